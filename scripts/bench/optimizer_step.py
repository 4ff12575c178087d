"""Milliseconds of an optimizer's step on a CPU: ours against torch.optim.AdamW.

    python scripts/bench/optimizer_step.py [--shapes small|large] [--rounds 3] [--threads 2]

small: 161 tensors of 64 x 64; large: the 85 million parameters of GPT-2's twelve blocks. Besides
AdamW: AdamW with states of 8 bits against ours in fp32, and the running mean of the weights against
a copy of them.
"""
import argparse
import json
import pathlib
import tempfile

import compare

SHAPES = {
    "small": "161x64x64",
    "large": "12x2304x768,12x768x768,12x3072x768,12x768x3072,12x13x768",
}
STEPS = {"small": 200, "large": 10}


def ours(folder, optimizer, options):
    recipe = folder / f"{optimizer}.json"
    recipe.write_text(json.dumps({
        "model": {"name": "mlp", "num_classes": 10}, "data": {"train": {"shards": "none.tar"}},
        "steps": 1, "optimizer": {"name": optimizer, "lr": 0.0001, "weight_decay": 0.01}}))
    return json.loads(compare.run([
        compare.PROGRAMS / "optimizer_loop", recipe, SHAPES[options.shapes],
        STEPS[options.shapes], options.threads]))


def peer(mode, options):
    return json.loads(compare.run([
        compare.TORCHRUN.parent / "python", "scripts/bench/peer_optimizer.py",
        SHAPES[options.shapes], "--mode", mode, "--rounds", STEPS[options.shapes],
        "--threads", options.threads]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shapes", choices=SHAPES, default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    other = {"ema": [], "copy": []}

    def adamw(folder):
        times = ours(folder, "adamw", options)
        other["ema"].append(times["ema_s"])
        other["copy"].append(times["copy_s"])
        return times["step_s"] * 1000

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        median = compare.in_turn({
            "adamw": lambda: adamw(folder),
            "adamw_8bit": lambda: ours(folder, "adamw_8bit", options)["step_s"] * 1000,
            "default": lambda: peer("default", options)["step_s"] * 1000,
            "fused": lambda: peer("fused", options)["step_s"] * 1000}, options.rounds)
    ema, copy = (sorted(other[kind][1:])[options.rounds // 2] * 1000 for kind in ("ema", "copy"))
    what = f"optimizer_step {options.shapes}"
    compare.report(what, ours=median["adamw"], peer=median["default"],
                   ratio=median["default"] / median["adamw"], fused=median["fused"],
                   ratio_fused=median["fused"] / median["adamw"])
    compare.report(f"{what} 8 bits", ours=median["adamw_8bit"], peer=median["adamw"],
                   ratio=median["adamw"] / median["adamw_8bit"])
    compare.report(f"{what} running mean", ours=ema, peer=copy, ratio=copy / ema)


if __name__ == "__main__":
    main()
