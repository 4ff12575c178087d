#!/usr/bin/env python3
"""Measures how long a developer waits: from saving one changed file to the end of the unit tests of
its module (scripts/unit.sh MODULE).

    .deps/venv/bin/python scripts/bench/rebuild.py [--everything]

Each row adds a definition that no cached object has seen to one file, runs the unit tests, and
restores the file. `--everything` also builds every other program and test after each change. The
preset "release" must be built; nothing else may run on the machine."""

import argparse
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHANGES = [  # what changes, file, module whose unit tests run
    ("a model", "lib/nn/models/vit.cpp", "nn"),
    ("an optimizer", "lib/optim/clip.cpp", "optim"),
    ("the trainer", "lib/train/loop/trainer.cpp", "train"),
    ("a recipe section", "lib/recipe/sections/batch.cpp", "recipe"),
    ("a recipe section's header", "lib/recipe/sections/batch.h", "recipe"),
    ("a narrow core header", "lib/core/text/lookup.h", "core"),
    ("the widest core header", "lib/core/error.h", "core"),
]


def seconds(command: list[str]) -> float:
    since = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - since


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of rebuilding after one change.")
    parser.add_argument("--everything", action="store_true")
    everything = parser.parse_args().everything
    build_all = ["cmake", "--build", "--preset", "release", "--", "--quiet"]
    seconds(build_all)
    print("| change | file | unit tests | s |" + (" all else, s |" if everything else ""))
    print("|---|---|---|---|" + ("---|" if everything else ""))
    for what, name, module in CHANGES:
        path = ROOT / name
        before = path.read_bytes()
        body = f"inline long long at() {{ return {time.time_ns()}; }}"
        path.write_bytes(before + f"\nnamespace scaletrain::rebuilt {{ {body} }}\n".encode())
        try:
            row = f"| {what} | `{name}` | {module} | {seconds(['scripts/unit.sh', module]):.0f} |"
            if everything:
                row += f" {seconds(build_all):.0f} |"
        finally:
            path.write_bytes(before)
        print(row, flush=True)
        seconds(build_all)


if __name__ == "__main__":
    main()
