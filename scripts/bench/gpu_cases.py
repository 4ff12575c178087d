"""What a recipe can ask for, each once on the device and once on the CPU: the losses must agree.

A case is a line of CASES; a few at a time run beside each other. Two ranks are on the one device,
with Gloo.
"""
import concurrent.futures
import dataclasses
import os

import compare

AT_A_TIME = 8
EXACT, ROUGH = 2e-3, 5e-2  # of the loss: in fp32, and where the device's numbers have fewer bits

PIXELS = 1e-7  # in fp64, of pixels that were normalised in fp32

RESNET = {"name": "resnet18", "num_classes": 10}
VIT = {"name": "vit_tiny", "dim": 64, "depth": 2, "heads": 2, "num_classes": 10}
TEXT = {"vocab_size": 257, "positions": 64, "dim": 64, "depth": 4, "heads": 4}
LLAMA = {"name": "llama", **TEXT, "kv_heads": 2, "hidden": 128}
MIXTRAL = {"name": "mixtral", **TEXT, "kv_heads": 2, "hidden": 64, "experts": 4,
           "experts_per_token": 2}
OPTIMIZERS = ("sgd", "adam", "adamw", "nadam", "radam", "lamb", "lars", "lion", "rmsprop",
              "rmsprop_tf", "adagrad", "muon", "adafactor", "schedule_free_adamw", "adamw_8bit",
              "lion_8bit", "soap")


@dataclasses.dataclass
class Case:
    name: str
    changes: dict
    ranks: int = 1
    tolerance: float = EXACT
    on_cpu: dict = dataclasses.field(default_factory=dict)  # changes there besides


def image_cases():
    def case(name, tolerance=EXACT, ranks=1, on_cpu=None, **changes):
        return Case(name, {"model": VIT, **changes}, ranks, tolerance, on_cpu=on_cpu or {})

    def model(name, tolerance=EXACT, changes=None, **keys):
        return Case("-".join(["model", name, *keys]),
                    {"model": {"name": name, "num_classes": 10, **keys}, **(changes or {})},
                    tolerance=tolerance)

    adam = {"optimizer": {"name": "adamw", "lr": 0.001}}
    # BatchNorm over few values makes much of rounding.
    yield from (model(name, PIXELS, {"precision": "fp64"}, zero_init_residual=True)
                for name in ("resnet50", "resnext50_32x4d"))
    yield model("resnet18", PIXELS, {"precision": "fp64"})
    yield model("mobilenet_v3_small", PIXELS, {"precision": "fp64"}, dropout=0.0)
    yield model("mlp")
    yield model("convnext_tiny", patch_size=2)
    yield model("resnet18", norm="group")
    yield case("pool", model={**VIT, "pool": "avg", "layer_scale": 1e-4})
    for name in OPTIMIZERS:
        yield case(f"optimizer-{name}", optimizer={"name": name, "lr": 0.001})
        yield case(f"offload-{name}", optimizer={"name": name, "lr": 0.001},
                   offload={"optimizer": True})
    for name in ("tf32", "bf16", "bf16_pure", "fp16"):
        yield case(f"{name}-vit", ROUGH, precision=name, on_cpu={"precision": "fp32"})
        yield case(f"{name}-resnet18", ROUGH, model=RESNET, precision=name, steps=1,
                   on_cpu={"precision": "fp32"})
    yield case("fp64", PIXELS, precision="fp64")
    yield case("ema", ema={"decay": [0.9, 0.99]}, **adam)
    yield case("swa", swa={"start": {"steps": 2}, "every": {"steps": 1}}, **adam)
    yield case("sam", sam={"rho": 0.05})
    yield case("clip-norm", clip={"norm": 0.5}, **adam)
    yield case("clip-value", clip={"value": 0.01})
    yield case("clip-adaptive", clip={"adaptive": 0.01})
    yield case("centralize", optimizer={"name": "sgd", "lr": 0.01, "centralize_gradients": True})
    yield case("layer-decay", optimizer={"name": "adamw", "lr": 0.001, "layer_decay": 0.7})
    yield case("mix", mix={"mixup": 0.8, "cutmix": 1.0})
    yield case("smoothing", loss={"name": "cross_entropy", "label_smoothing": 0.1})
    yield case("focal", loss="focal")
    yield case("binary", loss="binary_cross_entropy")
    yield case("accumulate", batch={"per_device": 8, "accumulate": 2})
    yield case("memory-mb", batch={"per_device": "auto", "memory_mb": 256, "global": 32})
    yield case("deterministic", deterministic=True)
    yield case("freeze", model={**VIT, "linear_probe": True})
    yield case("recompute", recompute={"units": "all"})
    yield case("recompute-budget", recompute={"budget_mb": 20})
    yield case("offload-activations", offload={"activations": True})
    yield case("offload-file", offload={"optimizer": True, "optimizer_folder": "state-{name}"})
    yield case("sync-batch", PIXELS, ranks=2, model={**RESNET, "norm": "sync_batch"},
               precision="fp64")
    yield case("vit-tensor", ranks=2, parallel={"tensor": 2})
    yield case("vit-pipeline", ranks=2, parallel={"pipeline": 2},
               batch={"per_device": 8, "accumulate": 4})
    yield case("resnet-pipeline", PIXELS, ranks=2, parallel={"pipeline": 2}, model=RESNET,
               batch={"per_device": 8, "accumulate": 4}, precision="fp64")
    yield case("resnet-shard", PIXELS, ranks=2, parallel={"shard": 2}, model=RESNET,
               precision="fp64")
    yield case("profile", profile={"after": 2, "steps": 2})


def text_cases(tokens):
    def case(name, model=None, tolerance=EXACT, ranks=1, on_cpu=None, **changes):
        text = {"model": model or LLAMA, "data": {"train": {"tokens": tokens}, "context": 64},
                "batch": {"per_device": 4, "global": 16},
                "optimizer": {"name": "adamw", "lr": 0.001}}
        return Case(f"text-{name}", {**text, **changes}, ranks, tolerance, on_cpu=on_cpu or {})

    gpt = {"name": "gpt2", **TEXT, "dropout": 0.0}
    fp32 = {"precision": "fp32"}
    documents = {"train": {"tokens": tokens}, "context": 64, "document_attention": True}
    yield case("gpt2", gpt)
    yield case("llama")
    yield case("mixtral", MIXTRAL)
    yield case("mixtral-capacity", {**MIXTRAL, "capacity_factor": 1.0})
    yield case("documents", data=documents)
    yield case("loss-chunk", gpt, loss={"name": "cross_entropy", "chunk": 64})
    yield case("recompute", gpt, recompute={"every": 2})
    yield case("offload-activations", gpt, offload={"activations": True})
    for name in ("bf16", "fp16", "bf16_pure"):
        yield case(name, tolerance=ROUGH, precision=name, on_cpu=fp32)
        yield case(f"{name}-mixtral", MIXTRAL, ROUGH, precision=name, on_cpu=fp32)
    yield case("fp8", tolerance=ROUGH, precision="fp8", on_cpu=fp32)
    levels = ("optimizer", "gradients", "parameters")
    for level in levels:
        yield case(f"shard-{level}", ranks=2, parallel={"shard": 2, "shard_level": level})
    yield case("shard-bf16", ranks=2, tolerance=ROUGH, precision="bf16",
               parallel={"shard": 2, "types": {"parameters": "bf16", "reduce": "fp32"}},
               on_cpu={"precision": "fp32", "parallel": {"shard": 2}})
    yield case("shard-offload-optimizer", ranks=2, parallel={"shard": 2},
               offload={"optimizer": True})
    yield case("shard-offload-parameters", ranks=2, parallel={"shard": 2},
               offload={"optimizer": True, "parameters": True})
    yield case("shard-muon", ranks=2, parallel={"shard": 2}, optimizer={"name": "muon", "lr": 1e-3})
    yield case("shard-recompute", ranks=2, parallel={"shard": 2}, recompute={"units": "all"})
    yield case("tensor", ranks=2, parallel={"tensor": 2})
    yield case("sequence", ranks=2, parallel={"tensor": 2, "sequence": True})
    yield case("context", ranks=2, parallel={"context": 2})
    yield case("context-documents", ranks=2, parallel={"context": 2}, data=documents)
    for schedule in ("gpipe", "1f1b", "interleaved", "zero_bubble"):
        yield case(f"pipeline-{schedule}", ranks=2,
                   parallel={"pipeline": 2, "schedule": schedule})
    yield case("pipeline-time", ranks=2, parallel={"pipeline": 2, "balance": "time"})
    yield case("experts", MIXTRAL, ranks=2, parallel={"expert": 2})
    yield case("shard-experts", MIXTRAL, ranks=2, parallel={"expert": 2, "shard": 2})
    yield case("copies", ranks=2)
    for name in ("bf16", "fp16", "powersgd", "onebit", "int8"):
        yield case(f"compress-{name}", ranks=2, compress=name)
    yield case("periodic", ranks=2, sync={"name": "periodic", "steps": 2})
    yield case("diloco", ranks=2, sync={"name": "diloco", "steps": 2, "fragments": 2})
    yield case("diloco-overlap", ranks=2,
               sync={"name": "diloco", "steps": 3, "overlap": 1}, compress="bf16")
    yield case("async", ranks=2, sync={"name": "async", "steps": 2}, tolerance=ROUGH)


def losses(machine, case, device):
    changes = {"steps": 6, **case.changes, "device": device, "threads": 2, **(case.on_cpu if device == "cpu" else {})}
    name = f"{case.name}-{device}"
    if "optimizer_folder" in changes.get("offload", {}):
        folder = changes["offload"]["optimizer_folder"].format(name=name)
        changes["offload"] = {**changes["offload"], "optimizer_folder": str(machine.folder / folder)}
        (machine.folder / folder).mkdir()
    flags, env = [], {}
    if case.ranks > 1:
        flags = ["--nproc", case.ranks]
        if device != "cpu":
            changes["device"], env = "auto", {"SCALETRAIN_SHARE_DEVICE": "1"}
    run, _ = machine.train(name, *flags, env=env, **changes)
    return [line["loss"] for line in compare.train_lines(run)]


def check(machine, case):
    """The line of a case: how far the losses are apart, or why one of them could not run."""
    found = {}
    for device in ("cuda", "cpu") if machine.gpu else ("cpu",):
        try:
            found[device] = losses(machine, case, device)
        except RuntimeError as error:
            return {"case": case.name, "failed": f"{device}: {str(error)[-1500:]}"}
    ours, reference = found.get("cuda", found["cpu"]), found["cpu"]
    apart = [abs(one - other) / abs(other) for one, other in zip(ours, reference)]
    line = {"case": case.name, "first": apart[0], "last": apart[-1], "steps": len(ours)}
    if len(ours) != len(reference) or not max(apart) <= case.tolerance:
        line["failed"] = f"the losses are too far apart: {ours}, on a CPU {reference}"
    return line


def run_all(machine, tokens):
    cases = [*image_cases(), *text_cases(tokens)]
    if only := os.environ.get("CASES"):
        cases = [case for case in cases if case.name in only.split(",")]
    machine.shards(512 if machine.gpu else 64, 32, "png")  # before they are asked for side by side
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME if machine.gpu else 1) as pool:
        yield from pool.map(lambda case: check(machine, case), cases)
