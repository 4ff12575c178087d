"""Training samples or tokens/s of each model on a CPU: ours against PyTorch DDP, two ranks.

    python scripts/bench/cpu_models.py [MODEL...] [--rounds 3] [--precision bf16]

Both sides: the same model, batch, precision and AdamW, a thread a rank, memory channels last for
convolutions. Ours reads raw images, or tokens, from shards and draws its order; the peer has one
batch in memory. The peer is the best of PyTorch as it is (DDP, AdamW), AdamW(fused=True), and
torch.compile with AdamW(fused=True).
"""
import argparse
import json
import pathlib
import random
import tempfile

import compare

NPROC = 2
WARMUP = 6
MODES = ("default", "fused", "compile")
TEXT = {"positions": 128, "vocab_size": 257, "dim": 128, "depth": 4, "heads": 4}

# name -> our recipe's model, image size (0: text), samples a rank and step, steps that count
MODELS = {
    "resnet18_32": ({"name": "resnet18"}, 32, 32, 30),
    "resnet18_64": ({"name": "resnet18"}, 64, 16, 24),
    "vit_tiny": ({"name": "vit_tiny", "patch_size": 4}, 32, 16, 24),
    "convnext_tiny": ({"name": "convnext_tiny"}, 64, 16, 16),
    "gpt2": ({"name": "gpt2", **TEXT, "dropout": 0.0}, 0, 16, 40),
    "llama": ({"name": "llama", **TEXT, "kv_heads": 2, "hidden": 384, "tied": True}, 0, 16, 40),
}


def write_images(folder, size):
    """Raw images in shards: what is compared is the step, not a decoder."""
    if not folder.is_dir():
        compare.run([compare.PROGRAMS / "scaletrain-data", "synth", folder, "--samples", 1024,
                     "--classes", 10, "--size", size, "--encoding", "raw"])
    return sorted(str(path) for path in folder.glob("*.tar"))


def write_tokens(folder):
    if not folder.is_dir():
        text = folder.with_suffix(".txt")
        words = random.Random(7)
        text.write_text("".join(words.choice("etaoin shrdlu\n") for _ in range(2_000_000)))
        compare.run([compare.PROGRAMS / "scaletrain-data", "tokenize", text, "--tokenizer", "bytes",
                     "--out", folder])
    return sorted(str(path) for path in folder.glob("*.bin"))


def ours(name, folder, precision):
    model, size, batch, steps = MODELS[name]
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    if size:
        train, model = {"shards": write_images(folder / f"raw-{size}", size)}, {**model, "num_classes": 10}
        data = {"train": train, "image_size": size}
    else:
        data = {"train": {"tokens": write_tokens(folder / "tokens")}}
    recipe = run / "recipe.json"
    recipe.write_text(json.dumps({
        "model": model, "data": data, "batch": {"per_device": batch}, "steps": WARMUP + steps,
        "precision": precision, "threads": 1, "optimizer": {"name": "adamw", "lr": 0.001},
        "log": {"every": {"steps": 1}}, "output": str(run / "run")}))
    compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", NPROC, recipe])
    lines = compare.train_lines(run / "run")[WARMUP - 1:]
    return NPROC * batch * steps / (lines[-1]["time"] - lines[0]["time"])


def peer(name, mode, precision):
    model, size, batch, steps = MODELS[name]
    output = compare.run([
        compare.TORCHRUN, "--nproc-per-node", NPROC, "scripts/bench/peer_cpu.py", json.dumps(model),
        "--image-size", size, "--batch", batch, "--warmup", WARMUP, "--steps", steps,
        "--mode", mode, "--precision", precision])
    return json.loads(output.splitlines()[-1])["samples_per_s"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()
    unknown = set(options.models) - set(MODELS)
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(MODELS)}")
    for name in options.models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            sides = {"ours": lambda: ours(name, pathlib.Path(folder), options.precision)}
            for mode in MODES:
                sides[mode] = lambda mode=mode: peer(name, mode, options.precision)
            median = compare.in_turn(sides, options.rounds)
        best = max(MODES, key=lambda mode: median[mode])
        compare.report(f"cpu_models {name} {options.precision}", ours=median["ours"],
                       peer=median[best], ratio=median["ours"] / median[best],
                       **{f"ratio_{mode}": median["ours"] / median[mode] for mode in MODES})


if __name__ == "__main__":
    main()
