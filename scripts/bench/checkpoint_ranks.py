"""Seconds of a checkpoint that several ranks write: ours against torch.distributed.checkpoint's
async_save, of ranks that all have the same state and do nothing else meanwhile.

    python scripts/bench/checkpoint_ranks.py [--nproc 4] [--bytes 1e9] [--tensors 161] [--rounds 3]
        [--folder F]
"""
import argparse
import json
import pathlib
import tempfile

import compare

REPEATS = 3  # of each side in a process


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc", type=int, default=4)
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--tensors", type=int, default=161)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="on the disk that is measured")
    options = parser.parse_args()
    found = {"ours": [], "peer": []}

    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        arguments = [pathlib.Path(name), int(options.bytes), options.tensors, REPEATS]

        def measure(side, command):
            out = compare.run(command)
            times = json.loads(out[out.index("{"):])
            found[side].append(times)
            return times["durable_s"]

        compare.in_turn({
            "ours": lambda: measure("ours", [
                compare.PROGRAMS / "scaletrain", "launch", "--nproc", options.nproc, "--",
                compare.PROGRAMS / "save_ranks_loop", *arguments]),
            "peer": lambda: measure("peer", [
                compare.TORCHRUN.parent / "python", "scripts/bench/peer_dcp.py", *arguments,
                options.nproc])}, options.rounds)

    def median(side, key):
        values = sorted(times[key] for times in found[side][1:])
        return values[len(values) // 2]

    for key, what in ("durable_s", "durable"), ("stall_s", "training waits"):
        ours, peer = median("ours", key), median("peer", key)
        compare.report(f"checkpoint of {options.bytes:g} bytes by {options.nproc} ranks, {what}",
                       ours=ours, peer=peer, ratio=peer / ours)


if __name__ == "__main__":
    main()
