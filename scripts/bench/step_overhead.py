"""Microseconds of a step that has little to compute: 32 linear layers of 64, a batch of 8, AdamW.

    python scripts/bench/step_overhead.py [--rounds 3]

Ours is a run of `scaletrain launch` as anybody starts one: it reads raw images of 8 x 8 from a
shard, counts, checks every gradient and writes its metrics. The peer is a Python loop with one
batch in memory; "fused" has AdamW(fused=True).
"""
import argparse
import json
import pathlib
import tempfile

import compare

WARMUP, STEPS = 200, 4000


def ours(folder):
    shards = folder / "shards"
    if not shards.is_dir():
        compare.run([compare.PROGRAMS / "scaletrain-data", "synth", shards, "--samples", 4096,
                     "--classes", 10, "--size", 8, "--encoding", "raw"])
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    recipe = run / "recipe.json"
    recipe.write_text(json.dumps({
        "model": {"name": "mlp", "layers": 31, "hidden": 64, "num_classes": 10},
        "data": {"train": {"shards": sorted(map(str, shards.glob("*.tar")))}, "image_size": 8},
        "batch": {"per_device": 8}, "steps": WARMUP + STEPS, "threads": 1,
        "optimizer": {"name": "adamw", "lr": 0.0001}, "log": {"every": {"steps": WARMUP}},
        "output": str(run / "run")}))
    compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", 1, recipe])
    lines = compare.train_lines(run / "run")
    first, last = (next(line for line in lines if line["step"] == step)
                   for step in (WARMUP, WARMUP + STEPS))
    return (last["time"] - first["time"]) / STEPS * 1e6


def peer(mode):
    return json.loads(compare.run([compare.TORCHRUN.parent / "python", "scripts/bench/peer_step.py",
                                   "--mode", mode]))["step_us"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        median = compare.in_turn({"ours": lambda: ours(pathlib.Path(folder)),
                                  "default": lambda: peer("default"),
                                  "fused": lambda: peer("fused")}, options.rounds)
    compare.report("step_overhead", ours=median["ours"], peer=median["default"],
                   ratio=median["default"] / median["ours"], fused=median["fused"],
                   ratio_fused=median["fused"] / median["ours"])


if __name__ == "__main__":
    main()
