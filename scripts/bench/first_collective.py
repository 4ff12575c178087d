"""Seconds from the command to the end of the first Gloo collective on two ranks: ours against
torchrun.

    python scripts/bench/first_collective.py [--rounds 5]

Ours is a recipe with a small model: the first collective is the broadcast of its weights, and the
time is that of environment.json, which rank 0 writes after it. Theirs is a script that does nothing
but join and all-reduce one number. Both need the digits (scripts/make_digits.py digits).
"""
import argparse
import json
import pathlib
import tempfile
import time

import compare

PEER = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 0:
    sys.stdout.write(str(time.time()))
dist.destroy_process_group()
"""


def ours(folder):
    run_folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    start = time.time()
    compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", 2,
                 "--set", f"output={run_folder}", "--set", "epochs=1", "recipes/digits_mlp.json"])
    return json.loads((run_folder / "environment.json").read_text(encoding="utf-8"))["time"] - start


def peer(folder):
    script = pathlib.Path(folder) / "peer.py"
    script.write_text(PEER, encoding="utf-8")
    start = time.time()
    return float(compare.run([compare.TORCHRUN, "--nproc-per-node", 2, script])) - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = compare.in_turn({"ours": lambda: ours(folder), "peer": lambda: peer(folder)},
                                 options.rounds)
    compare.report("first_collective", **result, ratio=result["peer"] / result["ours"])


if __name__ == "__main__":
    main()
