"""Seconds to launch two processes that do nothing: ours against torchrun.

    python scripts/bench/launch_true.py [--rounds 10]
"""
import argparse
import time

import compare


def seconds(command):
    start = time.perf_counter()
    compare.run(command)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    ours = [compare.PROGRAMS / "scaletrain", "launch", "--nproc", 2, "--", "/bin/true"]
    peer = [compare.TORCHRUN, "--nproc-per-node", 2, "--no-python", "/bin/true"]
    result = compare.in_turn({"ours": lambda: seconds(ours), "peer": lambda: seconds(peer)},
                             options.rounds)
    compare.report("launch_true", **result, ratio=result["peer"] / result["ours"])


if __name__ == "__main__":
    main()
