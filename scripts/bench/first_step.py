"""Seconds from the command to the end of the first optimizer step, ours against torchrun.

    python scripts/bench/first_step.py [--rounds 5] [--nproc 2]

Both train ResNet-18 on the digits (scripts/make_digits.py digits) with AdamW in fp32, 32 samples a
rank. The shards' indexes are there, as at every start but the first.
"""
import argparse
import json
import pathlib
import tempfile
import time

import compare


def ours(folder, nproc):
    run_folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    start = time.time()
    compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", nproc,
                 "--set", f"output={run_folder}", "--set", "precision=fp32",
                 "--set", "batch.per_device=32", "--set", "epochs=1",
                 "recipes/digits_resnet18.json"])
    return compare.train_lines(run_folder)[0]["time"] - start


def peer(nproc):
    start = time.time()
    output = compare.run([compare.TORCHRUN, "--nproc-per-node", nproc,
                          "scripts/bench/peer_ddp.py", "--shards", "digits", "--steps", 1])
    return json.loads(output)["first_step"] - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nproc", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        median = compare.in_turn({"ours": lambda: ours(folder, options.nproc),
                                  "peer": lambda: peer(options.nproc)}, options.rounds)
    compare.report("first_step", **median, ratio=median["peer"] / median["ours"])


if __name__ == "__main__":
    main()
