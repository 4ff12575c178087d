#!/usr/bin/env python3
"""CPU time that the time ledger adds to a step, by CLOCK_THREAD_CPUTIME_ID.

    scripts/bench/ledger_cost.py [--steps 20000] [--step-ms 5] [--build build/release]

Compiles scripts/bench/ledger_cost.cpp with the ledger of this tree and runs each case ten times. Prints
the median and the range in microseconds a step, and the share of a step of --step-ms milliseconds of
CPU time."""

import argparse
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ("scripts/bench/ledger_cost.cpp", "lib/core/process/time_ledger.cpp")
REPEATS = 10
# Name, micro-batches, collectives a step.
CASES = (("one rank", 1, 0), ("data parallel, 2 buckets", 1, 4), ("sharded, 24 units", 1, 74),
         ("sharded, 24 units, accumulate 8", 8, 400))


def build(folder, libraries):
    program = folder / "ledger_cost"
    core = libraries / "lib/core/libscaletrain_core.a"
    fmt = next(iter((libraries / "third_party/fmt").glob("*.a")), None)
    subprocess.run(["g++", "-std=c++20", "-O2", f"-I{ROOT}", *(str(ROOT / source) for source in SOURCES), str(core),
                    *([str(fmt)] if fmt else []), "-lcrypto", "-lxxhash", "-lpthread", "-o", str(program)], check=True)
    return program


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=20000, help="steps of each run, 10,000 or more")
    options.add_argument("--step-ms", type=float, default=5, help="CPU time of a step to compare with")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build of this tree")
    asked = options.parse_args()
    if asked.steps < 10000:
        options.error("--steps: at least 10,000")
    with tempfile.TemporaryDirectory() as folder:
        program = build(pathlib.Path(folder), asked.build)
        print(f"{'case':<34} {'us a step':>10} {'range':>15} {'share':>8}")
        for name, micro_steps, collectives in CASES:
            costs = [float(subprocess.run([program, str(asked.steps), str(micro_steps), str(collectives)],
                                          check=True, capture_output=True, text=True).stdout) / 1000
                     for _ in range(REPEATS)]
            median = statistics.median(costs)
            print(f"{name:<34} {median:10.2f} {min(costs):7.2f}-{max(costs):<7.2f} "
                  f"{100 * median / (1000 * asked.step_ms):7.3f}%")


if __name__ == "__main__":
    main()
