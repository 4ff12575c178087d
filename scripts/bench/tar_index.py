"""Seconds to index a cached shard of 500,000 members: ours against Python's tarfile.

    python scripts/bench/tar_index.py [--rounds 5] [--members 500000] [--bytes 256]

Half of the members are images of so many bytes, half labels. Ours also groups the members, reads
every label and refuses repeated keys; tarfile lists the members (getmembers). "ours" is what
`scaletrain data index` does, with a thread a core; "one_thread" the same with one
thread, which is all that tarfile can use.
"""
import argparse
import json
import os
import pathlib
import tarfile
import tempfile
import time

import compare


def make_shard(path, members, size):
    """A tar of small samples, made header by header: tarfile would take minutes."""
    def block(name, count):
        header = tarfile.TarInfo(name)
        header.size = count
        return header.tobuf(tarfile.USTAR_FORMAT)

    padded = -(-size // 512) * 512
    with open(path, "wb") as file:
        for i in range(members // 2):
            file.write(block(f"{i:08d}.jpg", size) + b"x" * size + b"\0" * (padded - size))
            file.write(block(f"{i:08d}.cls", 3) + b"%03d" % (i % 1000) + b"\0" * 509)
        file.write(b"\0" * 1024)


def ours(path, members, threads):
    result = json.loads(compare.run([compare.PROGRAMS / "tar_program", "index", threads, path]))
    if result["samples"] != members // 2:
        raise SystemExit(f"indexed {result['samples']} samples of {members // 2}")
    return result["seconds"]


def by_tarfile(path, members):
    start = time.perf_counter()
    with tarfile.open(path) as tar:
        count = len(tar.getmembers())
    if count != members:
        raise SystemExit(f"tarfile found {count} members of {members}")
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--members", type=int, default=500_000)
    parser.add_argument("--bytes", type=int, default=256)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "shard.tar"
        make_shard(path, options.members, options.bytes)
        cores = len(os.sched_getaffinity(0))
        median = compare.in_turn({"ours": lambda: ours(path, options.members, cores),
                                  "one_thread": lambda: ours(path, options.members, 1),
                                  "peer": lambda: by_tarfile(path, options.members)},
                                 options.rounds)
    compare.report("tar_index", **median, ratio=median["peer"] / median["ours"],
                   ratio_one_thread=median["peer"] / median["one_thread"])


if __name__ == "__main__":
    main()
