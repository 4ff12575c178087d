"""The peer of optimizer_step.py: seconds of a step of torch.optim.AdamW, as one JSON line.

    python scripts/bench/peer_optimizer.py SHAPES --mode fused --rounds 20 --threads 2
"""
import argparse
import json
import statistics
import time

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes", help="COUNTxROWSxCOLUMNS,...")
    parser.add_argument("--mode", choices=["default", "fused"], default="default")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parameters = []
    for shape in options.shapes.split(","):
        count, *sizes = map(int, shape.split("x"))
        for _ in range(count):
            parameter = torch.nn.Parameter(torch.randn(sizes) * 0.02)
            parameter.grad = torch.randn(sizes) * 1e-3
            parameters.append(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True if options.mode == "fused" else None)
    times = []
    for _ in range(options.rounds + 2):
        begin = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"step_s": statistics.median(times[2:])}))


if __name__ == "__main__":
    main()
