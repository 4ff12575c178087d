"""Training throughput and peak memory on one GPU: ours against PyTorch eager and torch.compile.

Both sides train the same model at the same batch in bf16, channels last, with fused optimizers and
cuDNN's autotuning. "synthetic": nothing is decoded or augmented (ours reads raw images of the
model's size, PyTorch has one batch on the device); "shards": JPEGs in tar shards, a random resized
crop and a flip.
"""
import json
import statistics
import subprocess
import sys
import time

import compare

ROUNDS = 3
LAST_ROUND_AFTER_S = 300  # no round begins later: a part ends within ten minutes
WARMUP, STEPS = 20, 60

# name -> our recipe's model, the peer's constructor, samples a step, optimizer
MODELS = {
    "resnet50": ({"name": "resnet50"}, "torchvision.models:resnet50", 256,
                 {"name": "sgd", "lr": 0.1, "momentum": 0.9}),
    "vit_small": ({"name": "vit_tiny", "patch_size": 16, "dim": 384, "depth": 12, "heads": 6},
                  "timm.models:vit_small_patch16_224", 256, {"name": "adamw", "lr": 0.001}),
    "vit_base": ({"name": "vit_tiny", "patch_size": 16, "dim": 768, "depth": 12, "heads": 12},
                 "timm.models:vit_base_patch16_224", 128, {"name": "adamw", "lr": 0.001}),
}


class Size:
    """How large a measurement is: with a GPU as it is meant, without one only to start."""

    def __init__(self, machine, batch):
        self.image = 224 if machine.gpu else 32
        self.batch = batch if machine.gpu else 4
        self.warmup, self.steps = (WARMUP, STEPS) if machine.gpu else (1, 2)
        self.samples = 4096 if machine.gpu else 16
        self.rounds = ROUNDS if machine.gpu else 1
        self.data = ("synthetic", "shards") if machine.gpu else ("shards",)


def ours(machine, name, data, size):
    model, _, _, optimizer = MODELS[name]
    source = {"shards": shards(machine, data, size)}
    if data == "shards":
        source["augment"] = ["random_resized_crop", "random_flip"]
    depth = {} if machine.gpu or "depth" not in model else {"depth": 1}
    run, _ = machine.train(
        f"{name}-{data}-{time.monotonic_ns()}", model={**model, **depth, "num_classes": 1000},
        data={"train": source, "image_size": size.image}, batch={"per_device": size.batch},
        steps=size.warmup + size.steps, optimizer=optimizer, precision="bf16")
    lines = compare.train_lines(run)
    begin, end = lines[size.warmup - 1], lines[-1]
    return {"images_per_s": (end["samples"] - begin["samples"]) / (end["time"] - begin["time"]),
            "memory_bytes": max(line["memory_bytes"] for line in lines)}


def shards(machine, data, size):
    if data == "synthetic":
        return machine.shards(size.samples, size.image, "raw")
    return machine.shards(size.samples, 256 if machine.gpu else 48, "jpeg:90")


def peer(machine, name, data, size, mode):
    """None where what it needs is not installed."""
    _, constructor, _, optimizer = MODELS[name]
    try:
        __import__(constructor.split(":")[0])
    except ImportError:
        return None
    source = [] if data == "synthetic" else shards(machine, data, size)
    done = subprocess.run(
        [sys.executable, "scripts/bench/peer_gpu.py", constructor, "--mode", mode, "--data", *source,
         "--device", machine.device, "--batch", str(size.batch), "--image-size", str(size.image),
         "--optimizer", optimizer["name"], "--lr", str(optimizer["lr"]),
         "--warmup", str(size.warmup), "--steps", str(size.steps)],
        cwd=compare.ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{constructor} {mode}: exit {done.returncode}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(machine, name):
    size = Size(machine, MODELS[name][2])
    begin = time.monotonic()
    sides = {"ours": lambda data: ours(machine, name, data, size),
             "eager": lambda data: peer(machine, name, data, size, "eager"),
             "compile": lambda data: peer(machine, name, data, size, "compile")}
    numbers = {}
    rounds = 0
    while rounds < size.rounds and time.monotonic() - begin < LAST_ROUND_AFTER_S:
        for data in size.data:
            for side, run in sides.items():
                numbers.setdefault((data, side), []).append(run(data))
        rounds += 1
    for data in size.data:
        values = {side: combine(numbers[data, side]) for side in sides}
        machine.report(name, data=data, rounds=rounds, batch=size.batch, image_size=size.image,
                       images_per_s={side: value and value["images_per_s"]
                                     for side, value in values.items()},
                       memory_bytes={side: value and value["memory_bytes"]
                                     for side, value in values.items()})


def combine(runs):
    """Medians of one side's runs; None where it could not run."""
    if None in runs:
        return None
    return {key: float(f"{statistics.median(run[key] for run in runs):.5g}") for key in runs[0]}


def table(lines):
    rows = ["| model | data | ours | eager | compile | ours / eager | ours / compile | "
            "peak memory: ours, eager, compile |", "|---|---|---|---|---|---|---|---|"]
    for line in lines:
        speed, memory = line["images_per_s"], line["memory_bytes"]
        ratios = [f"{speed['ours'] / speed[side]:.2f}" if speed[side] else "-"
                  for side in ("eager", "compile")]
        rows.append(" | ".join(
            [f"| {line['part']} at {line['image_size']}, batch {line['batch']}", line["data"],
             *(f"{speed[side]:.0f} images/s" if speed[side] else "-" for side in speed), *ratios,
             ", ".join(f"{memory[side] / 2**30:.2f} GiB" if memory[side] else "-"
                       for side in memory)]) + " |")
    return "\n".join(rows) + "\n"
