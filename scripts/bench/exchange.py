"""How many times faster the ranks of one host exchange through shared memory than by Gloo.

    python scripts/bench/exchange.py [--rounds 9] [--ranks 2]

Processes as ranks, 25 MB of fp32 (of the whole tensor), and 256 bytes; both ways in turn in the same
processes, rank 0's median. With --plain Gloo's thread is scheduled as any other, which is as PyTorch
has it.
"""
import argparse
import json

import compare


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    program = compare.PROGRAMS / "exchange_loop"
    found = json.loads(compare.run(
        [program, options.ranks, options.rounds, "plain" if options.plain else "crowded"]))
    for name, sides in found.items():
        compare.report(f"exchange_{name}_{options.ranks}_ranks", ours=sides["shm"],
                       peer=sides["gloo"], ratio=sides["gloo"] / sides["shm"])


if __name__ == "__main__":
    main()
