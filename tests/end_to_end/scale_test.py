"""How the cost of a round grows with its size: simulated agents and workers at real stores."""

import json
import math
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import unittest

from end_to_end.support import BIN, LONG, SCALETRAIN, RunTestCase

SIZES = [128, 512, 1000, 2000, 4000] if LONG else [128, 1000]
ROUNDS = 5 if LONG else 1


def simulate(workers, *wrapper):
    done = subprocess.run([*wrapper, BIN / "agents_scale", str(workers)], capture_output=True,
                          text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def exponent(sizes, times):
    """The slope of log(time) over log(size), by least squares."""
    x, y = [math.log(size) for size in sizes], [math.log(time) for time in times]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    return (sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) /
            sum((a - mean_x) ** 2 for a in x))


class Scale(unittest.TestCase):
    def test_a_thousand_workers_on_125_agents_form_a_round(self):
        medians = []
        for size in SIZES:
            runs = [simulate(size) for _ in range(ROUNDS)]
            self.assertEqual(size // 8, runs[0]["agents"])
            medians.append([statistics.median(run[key] for run in runs)
                            for key in ("round_s", "meet_s")])
            print(f"{size} workers, {size // 8} agents: round {medians[-1][0]:.3f} s, "
                  f"workers meet {medians[-1][1]:.3f} s", flush=True)
        if LONG:  # a machine that is shared is no clock
            total = exponent(SIZES, [sum(median) for median in medians])
            print(f"time grows as n^{total:.2f}", flush=True)
            self.assertLessEqual(total, 1.1)

    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_no_process_looks_up_a_host_name(self):
        with tempfile.TemporaryDirectory(prefix="scaletrain-test-") as folder:
            trace = pathlib.Path(folder, "trace")
            simulate(128, "strace", "-f", "-e", "trace=connect,openat", "-o", str(trace))
            lines = trace.read_text().splitlines()
        connections = [line for line in lines if "connect(" in line and "127.0.0.1" in line]
        # Each worker and agent once, the leader and both stores' own, and the two first looks.
        self.assertLess(len(connections), 128 + 16 + 20)
        self.assertGreaterEqual(len(connections), 128 + 16)
        asked = [line for line in lines if "htons(53)" in line or "/etc/hosts" in line
                 or "/etc/resolv.conf" in line]
        self.assertEqual([], asked)


@unittest.skipUnless(LONG and shutil.which("strace"), "SCALETRAIN_LONG=1, and needs strace")
class Connections(RunTestCase):
    def test_a_rank_makes_few_connections(self):
        for ranks in (16, 32):
            trace = self.folder / f"trace{ranks}"
            recipe = self.recipe(f"ranks{ranks}", steps=1, threads=1, batch={"per_device": 2},
                                 validate=None)
            subprocess.run(["strace", "-f", "-e", "trace=connect", "-o", trace, SCALETRAIN, "launch",
                            "--nproc", str(ranks), recipe], check=True, timeout=600,
                           capture_output=True)
            made = sum("connect(" in line and "127.0.0.1" in line
                       for line in trace.read_text().splitlines())
            print(f"{ranks} ranks: {made / ranks:.1f} connections each", flush=True)
            # To the store, and then to some peers, not to all.
            self.assertLessEqual(made / ranks, 2 + 2 * math.log2(ranks))


if __name__ == "__main__":
    unittest.main()
