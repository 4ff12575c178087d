"""Costs of trackers: pairs of runs in turn, with and without all exporters.

    python scripts/bench/exporters.py [--pairs 30] [--steps 1000]
    python scripts/bench/exporters.py --faults [--steps 300] [--limit 300]

The first form reports the median difference of the time of a step in percent with its 95 % interval
(bootstrap), and how much CPU time of the training process they add to a step. "holds" is true if the interval
contains 0 or the median is below 1 %, and the CPU time grows by at most 0.43 %. The mlflow exporter and the
webhook talk to a server of this program. It needs an idle machine, and about 20 s a pair on 2 cores.

--faults trains by a PyTorch loop that calls wandb or mlflow, and by scaletrain, while the tracker's server or
disk fails; the table has exit code, seconds and what came of it (exporter_faults.py). It needs
`scripts/setup.sh --peer trackers`, and root for the full disk. A program that has not ended after --limit
seconds is stopped; in the first form that ends the benchmark.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import compare

sys.path.insert(0, str(compare.ROOT / "tests"))
from end_to_end.tracker_server import TrackerServer  # noqa: E402

TRACKERS = ["tensorboard", "csv", "prometheus", "wandb", "mlflow", "trackio", "mlperf"]
RESAMPLES = 10_000
MOST_STEP_PERCENT = 1
MOST_CPU_PERCENT = 0.43
LOOK_S = 0.02
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def shards(folder):
    path = folder / "shards"
    if not path.is_dir():
        compare.run([compare.PROGRAMS / "scaletrain-data", "synth", path, "--samples", 4096, "--classes", 10,
                     "--size", 8, "--encoding", "raw"])
    return sorted(map(str, path.glob("*.tar")))


def recipe(folder, steps, log):
    """A recipe file with a step of some milliseconds, and the folder of its run."""
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    path = run / "recipe.json"
    path.write_text(json.dumps({
        "name": "exporters", "model": {"name": "mlp", "layers": 3, "hidden": 1024, "num_classes": 10},
        "data": {"train": {"shards": shards(folder)}, "image_size": 8}, "batch": {"per_device": 32},
        "steps": steps, "threads": 1, "optimizer": {"name": "adamw", "lr": 0.0001},
        "log": {"every": {"steps": 10}, **log}, "output": str(run / "run")}))
    return path, run / "run"


def cpu_seconds(pid):
    """CPU seconds of a process; None if it has ended."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def worker_of(launcher):
    """The process id of the launcher's worker; None while there is none."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
            if int(rest.split()[1]) != launcher:
                continue
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if b"scaletrain-worker" in command.split(b"\0")[0]:
            return int(name.split()[0])
    return None


class WorkerWatch:
    """CPU time of the training process from its first record on."""

    def __init__(self, launcher, run):
        self.launcher, self.metrics = launcher, run / "metrics.jsonl"
        self.worker = self.first_s = self.last_s = None

    def look(self):
        self.worker = self.worker or worker_of(self.launcher)
        now_s = cpu_seconds(self.worker) if self.worker else None
        if now_s is None or not self.metrics.exists():
            return
        self.first_s = now_s if self.first_s is None else self.first_s
        self.last_s = now_s

    def seconds(self):
        return 0 if self.first_s is None else self.last_s - self.first_s


def launch(path, run, server_url, prefix=(), limit_s=None):
    """(exit code, standard error, wall seconds, CPU seconds of the training process) of a run.

    The exit code is None if the run was stopped after `limit_s`.
    """
    since = time.monotonic()
    with tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(
            [*prefix, compare.PROGRAMS / "scaletrain", "launch", "--nproc", "1", path], cwd=compare.ROOT,
            env={**os.environ, "MLFLOW_TRACKING_URI": server_url}, stdout=subprocess.DEVNULL, stderr=error)
        watch = WorkerWatch(process.pid, run)
        is_over = False
        while process.poll() is None and not is_over:
            watch.look()
            time.sleep(LOOK_S)
            is_over = limit_s is not None and time.monotonic() - since > limit_s
        if is_over:
            process.terminate()
        process.wait()
        error.seek(0)
        return None if is_over else process.returncode, error.read(), time.monotonic() - since, watch.seconds()


def measure(folder, steps, log, server_url, limit_s):
    """(seconds a step, CPU seconds a step of the training process)"""
    path, run = recipe(folder, steps, log)
    code, error, _, cpu_s = launch(path, run, server_url, limit_s=limit_s)
    if code != 0 or "warning: export" in error:
        sys.exit(f"exit {code}\n{error[-4000:]}")
    lines = compare.train_lines(run)
    wall_s = (lines[-1]["time"] - lines[0]["time"]) / (lines[-1]["step"] - lines[0]["step"])
    return wall_s, cpu_s / steps


def interval(values):
    """95 % interval of the median, by the bootstrap."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]


def overhead(folder, pairs, steps, limit_s):
    server = TrackerServer()
    log = {"to": TRACKERS, "webhook": server.url + "/hook", "on_event": "true"}
    walls, cpus, step_ms = [], [], []
    for pair in range(pairs + 1):  # the first one is not counted
        sides = [("without", {}), ("with", log)]
        found = {}
        for name, keys in sides if pair % 2 else reversed(sides):
            found[name] = measure(folder, steps, keys, server.url, limit_s)
        if pair == 0:
            continue
        step_ms.append(found["without"][0] * 1000)
        walls.append((found["with"][0] / found["without"][0] - 1) * 100)
        cpus.append((found["with"][1] / found["without"][1] - 1) * 100)
        print(f"pair {pair}: wall {walls[-1]:+.2f} %, CPU {cpus[-1]:+.2f} %", file=sys.stderr, flush=True)
    server.close()
    low, high = interval(walls)
    holds = (low <= 0 <= high or statistics.median(walls) < MOST_STEP_PERCENT) and \
        statistics.median(cpus) <= MOST_CPU_PERCENT
    print(json.dumps({"name": "exporters", "pairs": pairs, "steps": steps, "holds": holds,
                      "step_ms": round(statistics.median(step_ms), 2),
                      "step_time_percent": round(statistics.median(walls), 3),
                      "step_time_interval": [round(low, 3), round(high, 3)],
                      "training_cpu_percent": round(statistics.median(cpus), 3),
                      "training_cpu_interval": [round(end, 3) for end in interval(cpus)]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=0, help="default: 1000, with --faults 300")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--only", default="", help="with --faults: rows whose tracker and fault contain this text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.faults:
            import exporter_faults  # which imports this module
            exporter_faults.table(folder, options.steps or 300, options.limit, options.only)
        else:
            overhead(folder, options.pairs, options.steps or 1000, options.limit)


if __name__ == "__main__":
    main()
