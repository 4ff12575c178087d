"""Samples/s out of cached shards without decoding: ours against libarchive and webdataset.

    python scripts/bench/tar_read.py [--rounds 5] [--samples 4000] [--bytes 56000]

Shards of images of so many random bytes, each with a .cls, one thread a side, all samples one after
another; at the end of a sample key, label and image are in memory. Ours is what a thread of the
loader does for a sample: it reads the image at the place that the shard's index names, and takes the
label from the index (scripts/bench/tar_index.py has what that takes, once). "peer" is libarchive with
blocks of 10,240 bytes, as its manual and bsdtar have it, "peer_blocks" libarchive with blocks of a
megabyte, "peer_webdataset" PyPI's webdataset in Python without decoding: all read every member.
"""
import argparse
import json
import pathlib
import tempfile
import time

import compare


def make_shards(folder, samples, size):
    import random

    import webdataset
    generator = random.Random(1)
    with webdataset.ShardWriter(str(folder / "s-%06d.tar"), maxcount=1000, verbose=0) as writer:
        for i in range(samples):
            writer.write({"__key__": f"{i:08d}", "jpg": generator.randbytes(size), "cls": i % 1000})
    return sorted(folder.glob("*.tar"))


def by_program(command, shards, samples):
    """Samples a second of one side."""
    program, *arguments = command
    result = json.loads(compare.run([compare.PROGRAMS / program, *arguments, *shards]))
    if result["samples"] != samples:
        raise SystemExit(f"{command} read {result['samples']} samples of {samples}")
    return samples / result["seconds"]


def by_webdataset(shards, samples):
    import webdataset
    start = time.perf_counter()
    count = sum(1 for _ in webdataset.WebDataset([str(s) for s in shards], shardshuffle=False))
    if count != samples:
        raise SystemExit(f"webdataset read {count} samples of {samples}")
    return samples / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--bytes", type=int, default=56000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        shards = make_shards(pathlib.Path(name), options.samples, options.bytes)

        def read(program, *arguments):
            return lambda: by_program([program, *arguments], shards, options.samples)

        median = compare.in_turn(
            {"ours": read("data_program", "read"),
             "peer": read("tar_program", "libarchive", 10240),
             "peer_blocks": read("tar_program", "libarchive", 1 << 20),
             "peer_webdataset": lambda: by_webdataset(shards, options.samples)}, options.rounds)
    compare.report("tar_read", **median, ratio=median["ours"] / median["peer"],
                   ratio_blocks=median["ours"] / median["peer_blocks"],
                   ratio_webdataset=median["ours"] / median["peer_webdataset"])


if __name__ == "__main__":
    main()
