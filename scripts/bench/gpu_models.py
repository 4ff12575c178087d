"""Training throughput and peak memory on one GPU: ours against PyTorch eager and torch.compile.

Both sides train the same model at the same batch in bf16, channels last, with fused optimizers and
cuDNN's autotuning. "synthetic": nothing is decoded or augmented (ours reads raw images of the
model's size, PyTorch has one batch on the device); "shards": JPEGs in tar shards, a random resized
crop and a flip; "tokens": ours reads a text's, PyTorch has one batch of random ones.
"""
import json
import os
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

import compare

ROUNDS = int(os.environ.get("ROUNDS", "3"))
KINDS = os.environ.get("KINDS", "synthetic,shards").split(",")  # of images
LAST_ROUND_AFTER_S = 300  # no round begins later: a part ends within ten minutes
WARMUP, STEPS = 20, 60


class Model(NamedTuple):
    """What both sides train."""
    recipe: dict  # our recipe's model
    peer: str     # its constructor for peer_gpu.py
    batch: int
    optimizer: dict

    @property
    def is_text(self):
        return self.peer.startswith("transformers:")

    @property
    def unit(self):
        return "tokens" if self.is_text else "images"


ADAMW = {"name": "adamw", "lr": 0.0003}
MODELS = {
    "resnet50": Model({"name": "resnet50"}, "torchvision.models:resnet50", 256,
                      {"name": "sgd", "lr": 0.1, "momentum": 0.9}),
    "vit_small": Model({"name": "vit_small"}, "timm.models:vit_small_patch16_224", 256, ADAMW),
    "vit_base": Model({"name": "vit_base"}, "timm.models:vit_base_patch16_224", 128, ADAMW),
    "gpt2": Model({"name": "gpt2", "dropout": 0.0}, "transformers:GPT2Config", 16, ADAMW),
}


class Size:
    """How large a measurement is: with a GPU as it is meant, without one only to start."""

    def __init__(self, machine, model):
        self.image = 224 if machine.gpu else 32
        self.context = 1024 if machine.gpu else 64
        self.batch = model.batch if machine.gpu else 4
        self.warmup, self.steps = (WARMUP, STEPS) if machine.gpu else (1, 2)
        self.samples = 4096 if machine.gpu else 16
        self.rounds = ROUNDS if machine.gpu else 1
        self.data = ["tokens"] if model.is_text else KINDS
        if not machine.gpu:
            self.data = self.data[-1:]


def ours(machine, name, data, size):
    model = MODELS[name]
    shape = {} if machine.gpu or name == "resnet50" else {"depth": 1}
    if model.is_text:
        source = {"train": {"tokens": machine.tokens()}, "context": size.context}
    else:
        shape["num_classes"] = 1000
        train = {"shards": shards(machine, data, size)}
        if data == "shards":
            train["augment"] = ["random_resized_crop", "random_flip"]
        source = {"train": train, "image_size": size.image}
    run, _ = machine.train(
        f"{name}-{data}-{time.monotonic_ns()}", model={**model.recipe, **shape}, data=source,
        batch={"per_device": size.batch}, steps=size.warmup + size.steps,
        optimizer=model.optimizer, precision="bf16", log={"every": {"steps": size.warmup}},
        checkpoint={"every": {"steps": 10 * size.steps}})
    lines = compare.train_lines(run)
    begin = next(line for line in lines if line["step"] == size.warmup)
    end = lines[-1]
    return {"samples_per_s": (end["samples"] - begin["samples"]) / (end["time"] - begin["time"]),
            "memory_bytes": max(line["memory_bytes"] for line in lines)}


def shards(machine, data, size):
    if data == "synthetic":
        return machine.shards(size.samples, size.image, "raw")
    return machine.shards(size.samples, 256 if machine.gpu else 48, "jpeg:90")


def peer(machine, name, data, size, mode):
    """None where what it needs is not installed."""
    model = MODELS[name]
    try:
        __import__(model.peer.split(":")[0])
    except ImportError:
        return None
    source = shards(machine, data, size) if data == "shards" else []
    return run_peer(machine, model, "--mode", mode, "--data", *source, "--batch", size.batch,
                    "--image-size", size.image, "--context", size.context,
                    "--warmup", size.warmup, "--steps", size.steps)


def run_peer(machine, model, *flags):
    """What peer_gpu.py prints."""
    done = subprocess.run(
        [sys.executable, "scripts/bench/peer_gpu.py", model.peer, "--device", machine.device,
         "--optimizer", model.optimizer["name"], "--lr", str(model.optimizer["lr"]),
         *map(str, flags)], cwd=compare.ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{model.peer}: exit {done.returncode}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(machine, name, modes=("eager", "compile")):
    model = MODELS[name]
    size = Size(machine, model)
    begin = time.monotonic()
    sides = {"ours": lambda data: ours(machine, name, data, size)}
    for mode in modes:
        sides[mode] = lambda data, mode=mode: peer(machine, name, data, size, mode)
    numbers = {}
    rounds = 0
    while rounds < size.rounds and time.monotonic() - begin < LAST_ROUND_AFTER_S:
        for data in size.data:
            for side, run in sides.items():
                numbers.setdefault((data, side), []).append(run(data))
        rounds += 1
    for data in size.data:
        values = {side: combine(numbers[data, side]) for side in sides}
        each = size.context if model.is_text else 1
        machine.report(name, data=data, rounds=rounds, batch=size.batch,
                       size=size.context if model.is_text else size.image,
                       rate={side: value and value["samples_per_s"] * each
                             for side, value in values.items()},
                       memory_bytes={side: value and value["memory_bytes"]
                                     for side, value in values.items()})


def combine(runs):
    """Medians of one side's runs; None where it could not run."""
    if None in runs:
        return None
    return {key: float(f"{statistics.median(run[key] for run in runs):.5g}")
            for key in ("samples_per_s", "memory_bytes")}


def table(lines):
    rows = ["| model | data | ours | eager | compile | ours / eager | ours / compile | "
            "peak memory: ours, eager, compile |", "|---|---|---|---|---|---|---|---|"]
    for line in lines:
        speed, memory, unit = line["rate"], line["memory_bytes"], MODELS[line["part"]].unit
        ratios = [f"{speed['ours'] / speed[side]:.2f}" if speed.get(side) else "-"
                  for side in ("eager", "compile")]
        rows.append(" | ".join(
            [f"| {line['part']} at {line['size']}, batch {line['batch']}", line["data"],
             *(f"{speed[side]:.0f} {unit}/s" if speed.get(side) else "-"
               for side in ("ours", "eager", "compile")), *ratios,
             ", ".join(f"{memory[side] / 2**30:.2f} GiB" if memory.get(side) else "-"
                       for side in ("ours", "eager", "compile"))]) + " |")
    return "\n".join(rows) + "\n"
