"""Training tokens a second of a language model that ranks hold together: ours (shard_level
"parameters") against PyTorch's FSDP2 (fully_shard) over Gloo, and a job of copies against DDP.

    python scripts/bench/zero3_step.py [MODEL...] [--ranks 2,4] [--rounds 3] [--steps 40]

Models, batches and the peer are those of cpu_models.py: AdamW, a thread a rank. Both sides exchange
by Gloo; `ratio_shm` is ours in shared memory, as it runs when nothing is said.
"""
import argparse
import json
import pathlib
import tempfile

import compare
import cpu_models

TEXTS = ("gpt2", "llama")


def ours(name, folder, ranks, shard, exchange, steps):
    model, _, batch, _ = cpu_models.MODELS[name]
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    recipe = run / "recipe.json"
    recipe.write_text(json.dumps({
        "model": model, "data": {"train": {"tokens": cpu_models.write_tokens(folder / "tokens")}},
        "batch": {"per_device": batch}, "steps": cpu_models.WARMUP + steps, "threads": 1,
        "parallel": {"shard": shard}, "dist": {"cpu": exchange},
        "optimizer": {"name": "adamw", "lr": 0.001}, "log": {"every": {"steps": 1}},
        "output": str(run / "run")}))
    compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", ranks, recipe])
    lines = compare.train_lines(run / "run")[cpu_models.WARMUP - 1:]
    return ranks * batch * steps / (lines[-1]["time"] - lines[0]["time"])


def peer(name, ranks, sharded, steps):
    model, _, batch, _ = cpu_models.MODELS[name]
    found = json.loads(compare.run(
        [compare.TORCHRUN, "--nproc-per-node", ranks, "scripts/bench/peer_cpu.py", json.dumps(model),
         "--batch", batch, "--warmup", cpu_models.WARMUP, "--steps", steps, "--mode", "fused",
         *(["--sharded"] if sharded else [])]).splitlines()[-1])
    return found["samples_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(TEXTS))
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    unknown = set(options.models) - set(TEXTS)
    if unknown:
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(TEXTS)}")
    for name in options.models or TEXTS:
        for ranks in map(int, options.ranks.split(",")):
            for kind, shard in (("zero3", ranks), ("copies", 1)):
                with tempfile.TemporaryDirectory() as made:
                    folder = pathlib.Path(made)
                    median = compare.in_turn({
                        "ours": lambda: ours(name, folder, ranks, shard, "gloo", options.steps),
                        "shm": lambda: ours(name, folder, ranks, shard, "shm", options.steps),
                        "peer": lambda: peer(name, ranks, shard > 1, options.steps),
                    }, options.rounds)
                compare.report(f"{kind}_step {name} {ranks}_ranks", ours=median["ours"],
                               peer=median["peer"], ratio=median["ours"] / median["peer"],
                               ratio_shm=median["shm"] / median["peer"])


if __name__ == "__main__":
    main()
