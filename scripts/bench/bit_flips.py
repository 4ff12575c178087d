#!/usr/bin/env python3
"""Share of single-bit flips that a run with the recipe's `integrity` finds, by kind.

    scripts/bench/bit_flips.py [--from 0] [--to 20] [--ranks 2,4] [--every 50] [--out flips.jsonl]

Trains a GPT of 10.9 M parameters on random tokens. Each flip has a number, from which its bit (sign,
exponent or one of the seven highest bits of the mantissa), element, rank and step follow, so that a
range can be run piece by piece. A run has one flip in each interval of --every steps and goes back
to the last checkpoint when it finds one. Appends a JSON line for each flip to --out and prints the
table of all lines in it."""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ("weights", "moments", "gradients", "comm", "products")
IN_ONE_RUN = 10  # flips
LOWEST_BIT = 16
FINDINGS = ("replicas_differ", "wrong_product")


def flip_of(kind, number, ranks, every):
    """The flip's place; `offset` is its step within its interval, from 1."""
    draw = random.Random(f"{kind} {number} {ranks}")
    return {"kind": kind, "number": number, "ranks": ranks, "rank": draw.randrange(ranks),
            "offset": draw.randint(1, every), "bit": draw.randint(LOWEST_BIT, 31), "index": draw.randrange(1 << 40)}


def text_of(flip, interval, every):
    return (f"flip-bit:rank={flip['rank']}@step={interval * every + flip['offset']}:where={flip['kind']}:"
            f"bit={flip['bit']}:index={flip['index']}")


class Trial:
    def __init__(self, folder, asked):
        self.folder, self.asked = folder, asked
        draw = random.Random(0)
        text = folder / "text.jsonl"
        text.write_text("".join(json.dumps({"text": "".join(draw.choices("abcdefgh ", k=2000))}) + "\n"
                                for _ in range(100)))
        self.call("data", "tokenize", str(text), "--out", str(folder / "tokens"))

    def call(self, *command, faults="", allowed=(0,)):
        done = subprocess.run([self.asked.build / "bin/scaletrain", *command], capture_output=True, text=True,
                              check=False, env={**os.environ, "SCALETRAIN_FAULT": faults})
        if done.returncode not in allowed:
            raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stderr[-2000:]}")
        return done

    def recipe(self, name, intervals):
        every = self.asked.every
        return {"name": name, "model": {"name": "gpt2", "vocab_size": 257, "positions": 16, "dim": 384, "depth": 6,
                                        "heads": 6, "dropout": 0.0},
                "data": {"train": {"tokens": str(self.folder / "tokens/train-000000.bin")}},
                "batch": {"global": 4, "per_device": 1}, "threads": 1, "steps": every * (intervals + 1),
                "optimizer": {"name": "adamw", "lr": 1e-4}, "clip": {"norm": 1.0},
                "checkpoint": {"every": {"steps": every}, "keep_last": 1}, "log": {"every": {"steps": every}},
                "integrity": {"every": every, "action": "restore", "products": self.asked.products},
                "output": str(self.folder / name)}

    def run(self, flips, name):
        """Adds what was found to the flips, and returns those after the interval in which the run ended. The first
        interval has no flip, since there is no checkpoint to go back to."""
        recipe = self.folder / f"{name}.json"
        recipe.write_text(json.dumps(self.recipe(name, len(flips))))
        every, ranks = self.asked.every, flips[0]["ranks"]
        faults = ";".join(text_of(flip, interval, every) for interval, flip in enumerate(flips, 1))
        done = self.call("launch", "--nproc", str(ranks), str(recipe), faults=faults, allowed=(0, 65, 76))
        events = [json.loads(line) for line in (self.folder / name / "journal.jsonl").read_text().splitlines()]
        last = len(flips)
        if done.returncode != 0:
            steps = [event["step"] for event in events if event.get("step", -1) >= 0]
            last = min(last, max(1, -(-max(steps, default=0) // every) - 1))
        for interval, flip in enumerate(flips[:last], 1):
            begin = interval * every
            flip["found"] = next((event["event"] for event in events if event["event"] in FINDINGS
                                  and begin + flip["offset"] <= event["step"] <= begin + every), "")
            flip["named"] = next((event["wrong"] == [flip["rank"]] for event in events
                                  if event["event"] == "replicas_differ"
                                  and begin < event["step"] <= begin + every), False)
            flip["end"] = done.returncode if interval == last else 0
        return flips[last:]


def table(lines):
    rows = collections.defaultdict(list)
    for line in lines:
        rows[line["kind"], line["ranks"]].append(line)
    print(f"{'kind':<10} {'ranks':>5} {'flips':>6} {'found':>6} {'share':>8} {'rank named':>11} {'run ended':>10}")
    for (kind, ranks), flips in sorted(rows.items()):
        found = sum(bool(flip["found"]) for flip in flips)
        print(f"{kind:<10} {ranks:5} {len(flips):6} {found:6} {100 * found / len(flips):7.1f}% "
              f"{sum(flip['named'] for flip in flips):11} {sum(flip['end'] != 0 for flip in flips):10}")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--from", dest="first", type=int, default=0, help="number of the first flip of each kind")
    options.add_argument("--to", type=int, default=20, help="number after the last flip of each kind")
    options.add_argument("--ranks", default="2,4", help="numbers of ranks")
    options.add_argument("--kinds", default=",".join(KINDS), help="kinds of flips")
    options.add_argument("--every", type=int, default=50, help="steps between two comparisons")
    options.add_argument("--products", default="sampled", help="integrity.products of the recipe")
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path("flips.jsonl"), help="file of results")
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build of this tree")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(pathlib.Path(folder), asked)
        for ranks in map(int, asked.ranks.split(",")):
            for kind in asked.kinds.split(","):
                left = [flip_of(kind, number, ranks, asked.every) for number in range(asked.first, asked.to)]
                while left:
                    flips, rest = left[:IN_ONE_RUN], left[IN_ONE_RUN:]
                    after = trial.run(flips, f"{kind}-{ranks}-{flips[0]['number']}")
                    with asked.out.open("a") as out:
                        for flip in flips[:len(flips) - len(after)]:
                            out.write(json.dumps(flip) + "\n")
                    left = after + rest
    table([json.loads(line) for line in asked.out.read_text().splitlines()])


if __name__ == "__main__":
    main()
