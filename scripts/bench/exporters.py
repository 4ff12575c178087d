"""What trackers cost a run: pairs of runs in turn with and without all exporters.

    python scripts/bench/exporters.py [--pairs 30] [--steps 2000]
    python scripts/bench/exporters.py --faults

The first form reports the median difference of the time of a step in percent with its 95 % interval
(bootstrap), and how much CPU time of the training process they add to a step. The mlflow
exporter and the webhook talk to a server of this program.

--faults trains the same steps by a PyTorch loop with the clients of wandb and mlflow, and by ours, while
the server refuses, fails or does not answer; the table has exit code, wall seconds and what was lost.
It needs `scripts/setup.sh --peer trackers`. A loop that has not ended after --limit seconds is stopped.
"""
import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

import compare

sys.path.insert(0, str(compare.ROOT / "tests"))
import free_port  # noqa: E402
from end_to_end.tracker_server import TrackerServer  # noqa: E402

TRACKERS = ["tensorboard", "csv", "prometheus", "wandb", "mlflow", "trackio", "mlperf"]
PEERS = compare.ROOT / ".deps/peer-trackers"  # the loop's PyTorch is this interpreter's
FAULTS = ["none", "refused", "latency", "cut", "error"]
RESAMPLES = 10_000
LOOK_S = 0.02


def shards(folder):
    path = folder / "shards"
    if not path.is_dir():
        compare.run([compare.PROGRAMS / "scaletrain-data", "synth", path, "--samples", 4096, "--classes", 10,
                     "--size", 8, "--encoding", "raw"])
    return sorted(map(str, path.glob("*.tar")))


def recipe(folder, steps, log):
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    path = run / "recipe.json"
    path.write_text(json.dumps({
        "name": "exporters", "model": {"name": "mlp", "layers": 3, "hidden": 256, "num_classes": 10},
        "data": {"train": {"shards": shards(folder)}, "image_size": 8}, "batch": {"per_device": 32},
        "steps": steps, "threads": 1, "optimizer": {"name": "adamw", "lr": 0.0001},
        "log": {"every": {"steps": 10}, **log}, "output": str(run / "run")}))
    return path, run / "run"


def cpu_seconds(pid):
    """CPU seconds of a process, None of one that has gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def worker_of(launcher):
    """The process id of the launcher's worker, None while there is none."""
    try:
        children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        return next((pid for pid in children
                     if b"scaletrain-worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()), None)
    except OSError:
        return None


def launch(path, server_url):
    """(exit code, standard error, wall seconds, CPU seconds of the training process) of a run."""
    since = time.monotonic()
    with tempfile.TemporaryFile("w+") as error:
        process = subprocess.Popen(
            [compare.PROGRAMS / "scaletrain", "launch", "--nproc", "1", path], cwd=compare.ROOT,
            env={**os.environ, "MLFLOW_TRACKING_URI": server_url}, stdout=subprocess.DEVNULL, stderr=error)
        worker, cpu_s = None, 0
        while process.poll() is None:
            worker = worker or worker_of(process.pid)
            cpu_s = max(cpu_s, cpu_seconds(worker) or 0) if worker else 0
            time.sleep(LOOK_S)
        error.seek(0)
        return process.returncode, error.read(), time.monotonic() - since, cpu_s


def measure(folder, steps, log, server_url):
    """(seconds a step, CPU seconds a step of the training process)"""
    path, run = recipe(folder, steps, log)
    code, error, _, cpu_s = launch(path, server_url)
    if code != 0:
        sys.exit(f"exit {code}\n{error[-4000:]}")
    lines = compare.train_lines(run)
    wall_s = (lines[-1]["time"] - lines[0]["time"]) / (lines[-1]["step"] - lines[0]["step"])
    return wall_s, cpu_s / steps


def interval(values):
    """95 % interval of the median, by the bootstrap."""
    draw = random.Random(7)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES)]


def overhead(folder, pairs, steps):
    server = TrackerServer()
    log = {"to": TRACKERS, "webhook": server.url + "/hook", "on_event": "true"}
    walls, cpus = [], []
    for pair in range(pairs + 1):  # the first one is not counted
        sides = [("without", {}), ("with", log)]
        found = {}
        for name, keys in sides if pair % 2 else reversed(sides):
            found[name] = measure(folder, steps, keys, server.url)
        if pair == 0:
            continue
        walls.append((found["with"][0] / found["without"][0] - 1) * 100)
        cpus.append((found["with"][1] / found["without"][1] - 1) * 100)
        print(f"pair {pair}: wall {walls[-1]:+.2f} %, CPU {cpus[-1]:+.2f} %", file=sys.stderr)
    server.close()
    low, high = interval(walls)
    cpu_low, cpu_high = interval(cpus)
    print(json.dumps({"name": "exporters", "pairs": pairs, "steps": steps,
                      "step_time_percent": round(statistics.median(walls), 3),
                      "step_time_interval": [round(low, 3), round(high, 3)],
                      "training_cpu_percent": round(statistics.median(cpus), 3),
                      "training_cpu_interval": [round(cpu_low, 3), round(cpu_high, 3)]}))


# A loop as users write it; `sys.argv`: tracker, steps.
LOOP = """
import os, sys, torch
tracker, steps = sys.argv[1], int(sys.argv[2])
if tracker == "mlflow":
    import mlflow
    mlflow.start_run()
    log = lambda step, loss: mlflow.log_metric("loss", loss, step=step)
else:
    import wandb
    wandb.init(project="bench")
    log = lambda step, loss: wandb.log({"loss": loss}, step=step)
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(steps):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(0, 10, (32,)))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if step % 10 == 0:
        log(step, loss.item())
print("trained", flush=True)
"""


def address(server, fault):
    server.fault = None if fault in ("none", "refused") else fault
    return f"http://127.0.0.1:{free_port.free_port()}" if fault == "refused" else server.url


def peer_row(tracker, fault, steps, limit_s, folder):
    server = TrackerServer()
    url = address(server, fault)
    env = {**os.environ, "MLFLOW_TRACKING_URI": url, "WANDB_BASE_URL": url, "WANDB_API_KEY": "0" * 40,
           "WANDB_DIR": str(folder), "PYTHONPATH": str(next(PEERS.glob("lib/python*/site-packages")))}
    since = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", LOOP, tracker, str(steps)], cwd=folder, env=env,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        out = process.communicate(timeout=limit_s)[0]
        end = f"exit {process.returncode}"
    except subprocess.TimeoutExpired:
        process.kill()
        out = process.communicate()[0]
        end = f"stopped after {limit_s} s"
    seconds = time.monotonic() - since
    server.close()
    return end, seconds, "trained to the end" if "trained\n" in out else "did not train to the end"


def our_row(tracker, fault, steps, folder):
    server = TrackerServer()
    code, error, seconds, _ = launch(recipe(folder, steps, {"to": tracker})[0], address(server, fault))
    server.close()
    exported = re.search(r"exported .*", error)
    return f"exit {code}", seconds, exported[0] if exported else "no summary"


def faults(folder, steps, limit_s):
    print("| tracker | fault | program | end | wall s | result |\n|---|---|---|---|---|---|")
    for tracker in ("wandb", "mlflow"):
        for fault in FAULTS:
            for program, row in (("PyTorch loop", peer_row(tracker, fault, steps, limit_s, folder)),
                                 ("scaletrain", our_row(tracker, fault, steps, folder))):
                end, seconds, result = row
                print(f"| {tracker} | {fault} | {program} | {end} | {seconds:.1f} | {result} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--limit", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if options.faults:
            faults(folder, options.steps, options.limit)
        else:
            overhead(folder, options.pairs, options.steps)


if __name__ == "__main__":
    main()
