"""Seconds of torch.distributed.checkpoint's async_save on several ranks; for checkpoint_ranks.py.

    python scripts/bench/peer_dcp.py FOLDER BYTES TENSORS ROUNDS RANKS

Every rank has the same tensors, as under DDP. Prints rank 0's medians as JSON: until async_save returns
(stall_s), and until its future is done (durable_s).
"""
import json
import os
import pathlib
import shutil
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp


def run(rank, folder, size, tensors, rounds, ranks, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    state = {f"layer{i:06}.weight": torch.randn(size // 4 // tensors) for i in range(tensors)}
    times = {"stall_s": [], "durable_s": []}
    for number in range(rounds + 1):
        path = folder / f"peer{number}"
        dist.barrier()
        start = time.perf_counter()
        saving = dcp.async_save(state, checkpoint_id=path)
        times["stall_s"].append(time.perf_counter() - start)
        saving.result()
        dist.barrier()
        times["durable_s"].append(time.perf_counter() - start)
        if rank == 0:
            shutil.rmtree(path)
    if rank == 0:
        print(json.dumps({name: statistics.median(values[1:]) for name, values in times.items()}))
    dist.destroy_process_group()


def main():
    folder, (size, tensors, rounds, ranks) = pathlib.Path(sys.argv[1]), map(int, sys.argv[2:6])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(run, (folder, size, tensors, rounds, ranks, port), nprocs=ranks)


if __name__ == "__main__":
    main()
