"""Whole runs beside torchrun: one node by variables alone, two nodes, a timer that runs out, signals
that were asked for. Both sides run at the same time."""

import json
import signal
import subprocess
import unittest

from launcher.torchrun_support import OWN, BothSidesTestCase, hold_port

TIMER = """
import os, time
from torch.distributed.elastic.timer import FileTimerClient, configure, expires
configure(FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
with expires(after=60):
    pass
open(os.environ["TEST_OUT"] + "-released", "w").close()
with expires(after=0.3, scope="loading"):
    time.sleep(1000)
"""


class Runs(BothSidesTestCase):
    def compare(self, ranks, own=OWN):
        """What workers were given; the variables of our last rank and of torchrun's."""
        for rank in range(ranks):
            ours, theirs = [json.loads((self.folder / f"{name}{rank}").read_text())
                            for name in self.SIDES]
            self.assertEqual(theirs[0], ours[0])
            self.assertEqual({k: v for k, v in theirs[1].items() if k not in own},
                             {k: v for k, v in ours[1].items() if k not in own})
            self.assertEqual(theirs[1].keys(), ours[1].keys())
        return ours[1], theirs[1]

    def test_one_node_by_variables_alone(self):
        env = {"PET_STANDALONE": "1", "PET_MODULE": "1", "PET_NPROC_PER_NODE": "2",
               "PET_LOG_DIR": "/dev/null", "PET_RDZV_ID": "unused", "PYTHONPATH": str(self.folder),
               "PET_RDZV_ENDPOINT": "no-such-host:1", "PET_MASTER_ADDR": "no-such-host"}
        sides = [self.begin(side, "dump_module", "x", "${local_rank}", env=env)
                 for side in self.SIDES]
        for side in sides:
            self.finish(side)
        for variables in self.compare(2, OWN | {"TORCHELASTIC_RUN_ID"}):
            self.assertEqual("", variables["TORCHELASTIC_ERROR_FILE"])
            self.assertNotEqual("unused", variables["TORCHELASTIC_RUN_ID"])

    def test_two_nodes(self):
        flags = ["--nnodes", 2, "--nproc-per-node", 2, "--master-addr", "127.0.0.1", "--rdzv-id",
                 "job", "--role", "trainer", "--max-restarts", 3, "-r", 3]
        nodes = []
        for side in self.SIDES:
            port = hold_port(self)
            nodes += [self.begin(side, *flags, "--node-rank", node, "--master-port", port,
                                 "--log-dir", f"{side}-of-{node}", "dump.py") for node in (1, 0)]
        # The second of each side waits ten minutes for a first one that has failed.
        for node in reversed(nodes):
            self.finish(node)
        ours, theirs = self.compare(4)
        self.assertEqual(("3", "1", "1", "3", "4"), tuple(ours[name] for name in (
            "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE")))
        self.assertEqual(theirs["MASTER_ADDR"], ours["MASTER_ADDR"])
        for node in (0, 1):
            name, files = self.logs(f"ours-of-{node}")
            # Beside them the journal of the leader.
            files = {path: text for path, text in files.items() if not path.endswith(".jsonl")}
            self.assertEqual(self.logs(f"theirs-of-{node}"), (name, files))
            self.assertEqual(4, len(files))

    def test_a_timer_that_runs_out_ends_its_worker(self):
        """torchrun ends itself by the same signal, and leaves the other workers behind."""
        (self.folder / "timer.py").write_text(TIMER)
        env = {"TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
        ours, theirs = [self.begin(side, "timer.py", env=env) for side in self.SIDES]
        error = self.finish(ours, 1).stderr
        self.assertIn('rank 0: its timer "loading" ran out: SIGKILL\n', error)
        self.assertIn("rank 0 failed first: killed by SIGKILL", error)
        self.finish(theirs, -signal.SIGKILL)
        self.wait_for_files("ours-released", "theirs-released")
        # Its pipe is gone; torchrun's stays.
        self.assertEqual(1, len(list(self.folder.glob("watchdog_timer_*"))))

    def test_signals_reach_the_workers_and_end_with_1(self):
        script = ("trap 'touch $TEST_OUT-heard; exit 0' TERM USR1; touch $TEST_OUT-ready;"
                  "while :; do sleep 0.02; done")
        sides = {}
        for number, flags in ((signal.SIGTERM, []),
                              (signal.SIGUSR1, ["--signals-to-handle", "SIGUSR1"])):
            for side in self.SIDES:
                out = f"{side}-{number}"
                sides[out] = number, self.begin(side, *flags, "--no-python", "sh", "-c", script,
                                                out=out)
        for out, (number, process) in sides.items():
            self.wait_for_files(f"{out}-ready")
            process.send_signal(number)
        for out, (number, process) in sides.items():
            if out.startswith("theirs"):
                # torchrun loses a signal that comes while it still starts, and after a second one
                # may leave workers behind, which hold its streams: they are not read.
                self.repeat(number, process)
                self.assertEqual(1, process.returncode)
            else:
                self.finish(process, 1)
            self.wait_for_files(f"{out}-heard")

    def repeat(self, number, process):
        """Sends the signal every ten seconds until the process ends, for at most a minute."""
        for _ in range(6):
            try:
                process.wait(timeout=10)
                return
            except subprocess.TimeoutExpired:
                process.send_signal(number)
        self.fail("torchrun lost every signal")


if __name__ == "__main__":
    unittest.main()
