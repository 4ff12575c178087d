"""The peer of step_overhead.py: microseconds of a step of a Python loop, as one JSON line.

    python scripts/bench/peer_step.py --mode fused
"""
import argparse
import json
import time

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--mode", choices=["default", "fused"], default="default")
    options = parser.parse_args()
    torch.set_num_threads(1)
    layers = [torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, options.width), torch.nn.ReLU()]
    for _ in range(options.layers - 2):
        layers += [torch.nn.Linear(options.width, options.width), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(options.width, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4,
                                  fused=True if options.mode == "fused" else None)
    images, targets = torch.randn(options.batch, 3, 8, 8), torch.randint(10, (options.batch,))
    begin, warmup = 0.0, options.steps // 10
    for step in range(warmup + options.steps):
        if step == warmup:
            begin = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(images), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # a loop shows its loss
    print(json.dumps({"step_us": (time.perf_counter() - begin) / options.steps * 1e6}))


if __name__ == "__main__":
    main()
