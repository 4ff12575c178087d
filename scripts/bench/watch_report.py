#!/usr/bin/env python3
"""Time to open a run of many logged steps: `scaletrain watch --once`, `report`, `status`, `runs` and `compare`.

    scripts/bench/watch_report.py [--steps 10000] [--rounds 5]

Writes a run folder with a "train" and a "ledger" record a step and a validation each 100 steps, as a run of two
attempts on two ranks has it, and prints
the median and the longest time of each command, its CPU time, and the size of the page.
"""
import argparse
import json
import math
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/scaletrain"


def train(step):
    return {"event": "train", "attempt": int(step > 7000), "step": step, "epoch": (step - 1) // 100,
            "samples": 64 * step, "loss": 2.3 / math.sqrt(step) + 0.01 * math.sin(step),
            "lr": 0.001 * (1 - step / 1e6), "grad_norm": 1 + 0.1 * math.cos(step), "samples_per_s": 1144.5 + step % 7,
            "data_time": 0.00123 + step % 3 / 1e5, "compute_time": 0.0543, "read_time": 0.00012,
            "decode_time": 0.0012, "augment_time": 0.00034, "memory_bytes": 1140000000 + step,
            "order_digest": f"{step * 0x9E3779B97F4A7C15 % 2**64:016x}", "skipped_samples": 0,
            "time": 1.7e9 + 0.056 * step}


def ledger(step):
    rows = {"start_up": 0, "data_wait": 0.0013, "host_to_device": 0.0004, "forward": 0.018 + step % 5 / 1e4,
            "backward": 0.031, "exposed_communication": 0.0011, "optimizer": 0.0024, "evaluation": 0,
            "checkpoint_stall": 0, "other": 0.0003}
    return {"event": "ledger", "attempt": int(step > 7000), "step": step, "rank": step % 2, "seconds": rows,
            "mean": rows, "straggler_s": 0.002, "time": 1.7e9 + 0.056 * step}


def evaluation(step):
    return {"event": "eval", "attempt": int(step > 7000), "split": "val", "step": step, "epoch": step // 100 - 1,
            "loss": 2 / math.sqrt(step), "top1": 1 - 2 / math.sqrt(step), "top5": 1.0, "count": 200, "skipped": 0,
            "time": 1.7e9 + 0.056 * step}


def write_run(run, steps):
    run.mkdir()
    (run / "recipe.json").write_text(json.dumps(
        {"version": 1, "name": run.name, "task": "image_classification", "model": {"name": "mlp", "num_classes": 10},
         "steps": steps, "output": str(run)}))
    records = []
    for step in range(1, steps + 1):
        records += [train(step), ledger(step)]
        if step % 100 == 0:
            records.append(evaluation(step))
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (run / "journal.jsonl").write_text("".join(json.dumps(event) + "\n" for event in (
        {"format": 1, "event": "attempt_started", "attempt": 0, "ranks": 2, "nodes": 1, "time": 1.7e9},
        {"event": "attempt_started", "attempt": 1, "ranks": 2, "nodes": 1, "time": 1.7e9 + 0.056 * 7000},
        {"event": "finished", "attempt": 1, "step": steps, "time": 1.7e9 + 0.056 * steps})))
    (run / "finished.json").write_text(json.dumps({"step": steps, "epoch": steps // 100}))


def cpu_seconds():
    """CPU time of the programs that have ended; unlike elapsed time it does not depend on other programs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, page = pathlib.Path(folder) / "long", pathlib.Path(folder) / "page.html"
        write_run(run, arguments.steps)
        for words in (["watch", "--once", "--width", "100", run], ["report", run, "-o", page], ["status", run],
                      ["runs", folder], ["compare", run, run], ["explain", "run", run]):
            times, cpu_times = [], []
            for _ in range(arguments.rounds):
                start, cpu_start = time.monotonic(), cpu_seconds()
                subprocess.run([arguments.program, *words], check=True, capture_output=True)
                times.append(time.monotonic() - start)
                cpu_times.append(cpu_seconds() - cpu_start)
            print(f"{words[0]:8} median {statistics.median(times):.3f} s   longest {max(times):.3f} s   "
                  f"CPU {statistics.median(cpu_times):.3f} s")
        print(f"page     {page.stat().st_size / 1e6:.2f} MB, {arguments.steps} logged steps")


if __name__ == "__main__":
    main()
