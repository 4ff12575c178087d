"""Seconds that PyTorch takes to save and load a state; for checkpoint_save.py.

    python scripts/bench/peer_checkpoint.py FOLDER BYTES TENSORS ROUNDS

torch.save followed by fsync, safetensors.torch.save_file followed by fsync, and load_file with copies
of its tensors, which are mapped, to those of a model: of what the disk has, and of what is in memory;
and the most memory that the process had.
"""
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import safetensors.torch
import torch


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def sync(path):
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def main():
    folder, size, tensors, rounds = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    state = {f"layer{i:06}.weight": torch.randn(size // 4 // tensors) for i in range(tensors)}
    path = folder / "peer"

    def save():
        torch.save(state, path)
        sync(path)

    def save_safe():
        safetensors.torch.save_file(state, path)
        sync(path)

    def load():
        for name, tensor in safetensors.torch.load_file(path).items():
            state[name].copy_(tensor)

    def forget():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    times = {"save_s": [], "safetensors_s": [], "cold_load_s": [], "load_s": []}
    for _ in range(rounds + 1):
        times["save_s"].append(seconds(save))
        path.unlink()
        times["safetensors_s"].append(seconds(save_safe))
        forget()
        times["cold_load_s"].append(seconds(load))
        times["load_s"].append(seconds(load))
        path.unlink()
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**medians, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
