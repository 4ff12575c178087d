"""Random recipes of tiny models, by a seed: models, optimizers, schedules, precisions, layouts and how
ranks communicate. A draft may be refused by `recipe check`; random_recipes_test.py draws until one is
accepted, so that the rules of the checks are not repeated here."""

import json
import math
import random

from end_to_end.support import DIGITS

STEPS, CUT = 4, 2
TOKENS = 8  # of a sequence
VOCABULARY = 52

# A seed decides the model and the number of ranks: rules refuse more drafts of some than of others.
MODELS = ("llama", "mixtral", "gpt2", "vit_tiny", "mixtral", "llama", "mlp")
# These have no small form: their checkpoints are 10 to 340 MB.
LARGE_MODELS = ("mobilenet_v3_small", "resnet18", "convnext_tiny")
RANKS = (4, 2, 4, 1, 2, 3)

OPTIMIZERS = {
    "sgd": (0.02, {"nesterov": [True, False]}), "adam": (1e-3, {}), "adamw": (1e-3, {}),
    "nadam": (1e-3, {"decoupled": [True, False]}), "radam": (1e-3, {"decoupled": [True, False]}),
    "lamb": (1e-3, {"trust_clip": [True, False], "always_adapt": [True, False]}),
    "lars": (0.1, {"nesterov": [True, False]}), "lion": (1e-4, {}),
    "rmsprop": (1e-4, {"centered": [True, False], "momentum": [0.0, 0.9]}),
    "rmsprop_tf": (1e-4, {"centered": [True, False], "momentum": [0.0, 0.9]}),
    "adagrad": (1e-3, {"lr_decay": [0.0, 0.1], "initial_accumulator_value": [0.0, 0.1]}),
    "muon": (1e-3, {"adjust_lr_fn": ["original", "match_rms_adamw"], "adamw_lr": [0.0, 1e-3]}),
    "adafactor": (1e-3, {}), "schedule_free_adamw": (1e-3, {}),
    "adamw_8bit": (1e-3, {"min_8bit_size": [0, 64, 4096]}),
    "lion_8bit": (1e-4, {"min_8bit_size": [0, 64, 4096]}),
    "soap": (1e-3, {"frequency": [1, 2, 10], "max_dim": [20, 10000]}),
}
DECAYS = {
    "constant": {}, "cosine": {"final_factor": [0.0, 0.1]},
    "cosine_restarts": {"cycle_epochs": [0.5], "cycle_factor": [1.0, 2.0], "cycle_decay": [0.5]},
    "linear": {"final_factor": [0.0, 0.1]}, "step": {"every_epochs": [0.3]},
    "multi_step": {"milestones": [[0.2, 0.5]]}, "polynomial": {"power": [0.5, 2.0]},
    "exponential": {}, "inverse_sqrt": {"timescale": [0, 2]}, "one_cycle": {},
    "warmup_stable_decay": {"decay_share": [0.5], "shape": ["linear", "cosine", "1-sqrt"]},
}


def layouts(ranks, axes):
    """All meshes of so many ranks: {axis: size} without axes of one rank."""
    meshes = [{}]
    for axis in axes:
        meshes += [{**mesh, axis: n} for mesh in meshes for n in range(2, ranks + 1)]
    found = []
    for mesh in meshes:
        # Ranks of "expert" are those of the data-parallel axes.
        size = math.prod(n for axis, n in mesh.items() if axis != "expert")
        readers = ranks // size * mesh.get("shard", 1)
        if ranks % size == 0 and readers % mesh.get("expert", 1) == 0:
            found.append(mesh)
    return found


class Draft:
    """One draw. `ranks` and `recipe`, which lacks its name, its data and its output."""

    def __init__(self, draw, name, ranks):
        self.draw, self.ranks = draw, ranks
        self.recipe = {"seed": draw.randrange(1000), "steps": STEPS, "threads": 1, "device": "cpu",
                       "log": {"every": {"steps": 1}}, "validate": {"every": {"steps": CUT}}}
        self.add_model(name)
        self.add_layout()
        self.add_batch()
        self.add_optimizer()
        self.add_schedule()
        self.add_updates()
        self.add_costs()
        self.add_communication()
        self.add_checkpoint()

    def maybe(self, probability):
        return self.draw.random() < probability

    def some(self, keys):
        """Some of `keys`, each with one of its values."""
        return {key: self.draw.choice(values) for key, values in keys.items() if self.maybe(0.5)}

    def add_model(self, name):
        decoder = {"vocab_size": VOCABULARY, "positions": TOKENS, "dim": 16, "heads": 4,
                   "depth": self.draw.choice([1, 2, 3])}
        llama = {**decoder, "kv_heads": self.draw.choice([2, 4]), "hidden": 32,
                 **self.some({"tied": [True], "rope_scaling": ["linear"], "norm_eps": [1e-6]})}
        keys = {
            "gpt2": lambda: {**decoder, "dropout": self.draw.choice([0.0, 0.1])},
            "llama": lambda: llama,
            "mixtral": lambda: {**llama, "experts": 4, **self.some({
                "experts_per_token": [1, 2], "capacity_factor": [1.0, 2.0],
                "router_aux_loss": [0.0, 0.02], "router_bias_rate": [0.01]})},
            "mlp": lambda: {"hidden": 32, "layers": self.draw.choice([1, 3]),
                            **self.some({"dropout": [0.1]})},
            "vit_tiny": lambda: {"patch_size": 8, "dim": 16, "depth": self.draw.choice([2, 3]),
                                 "heads": 2, **self.some({
                                     "dropout": [0.1], "drop_path": [0.1], "layer_scale": [0.1],
                                     "pool": ["token", "avg"]})},
            "convnext_tiny": lambda: {"patch_size": 2, **self.some({
                "drop_path": [0.1], "layer_scale": [0.1]})},
        }.get(name, lambda: self.some({"norm": ["batch", "sync_batch", "group"]}))
        self.reads_text = name in ("gpt2", "llama", "mixtral")
        self.model = {"name": name, **keys()}
        if not self.reads_text:
            self.model["num_classes"] = 10
        self.recipe["model"] = self.model

    def add_layout(self):
        axes = ["pipeline", "shard"]
        if self.reads_text or self.model["name"] == "vit_tiny":
            axes.append("tensor")
        if self.reads_text:
            axes.append("context")
        if self.model["name"] == "mixtral":
            axes.append("expert")
        mesh = self.draw.choice(layouts(self.ranks, axes))
        self.parallel = dict(mesh)
        if "shard" in mesh:
            self.parallel["shard_level"] = self.draw.choice(["optimizer", "gradients", "parameters"])
        if "pipeline" in mesh:
            self.parallel["schedule"] = self.draw.choice(
                ["1f1b", "gpipe", "interleaved", "zero_bubble"])
            if self.maybe(0.2):
                self.parallel["balance"] = "time"
        if "tensor" in mesh and self.maybe(0.5):
            self.parallel["sequence"] = True
        if self.parallel:
            self.recipe["parallel"] = self.parallel

    def readers(self):
        """The number of data-parallel ranks."""
        size = 1
        for axis in ("pipeline", "tensor", "context"):
            size *= self.parallel.get(axis, 1)
        return self.ranks // size

    def add_batch(self):
        per_device = self.draw.choice([1, 2])
        accumulate = self.draw.choice([1, 2, 4]) * self.parallel.get("pipeline", 1)
        self.recipe["batch"] = {"per_device": per_device,
                                "global": per_device * accumulate * self.readers()}

    def add_optimizer(self):
        name = self.draw.choice(sorted(OPTIMIZERS))
        lr, keys = OPTIMIZERS[name]
        self.recipe["optimizer"] = {"name": name, "lr": lr, **self.some(keys), **self.some({
            "weight_decay": [0.01], "decay_norm_and_bias": [True], "layer_decay": [0.75],
            "weight_decay_end": [0.1]})}
        if self.maybe(0.15):
            self.recipe["optimizer"]["centralize_gradients"] = True
        if self.maybe(0.2):
            self.recipe["optimizer"]["groups"] = [
                {"match": "*.weight", "lr_scale": 0.5, "weight_decay": 0.02}]
        if self.maybe(0.2):
            self.recipe["optimizer"].update(lr_base_batch=8, lr_scaling=self.draw.choice(
                ["linear", "sqrt"]))

    def add_schedule(self):
        if not self.maybe(0.7):
            return
        name = self.draw.choice(sorted(DECAYS))
        keys = {key: self.draw.choice(values) for key, values in DECAYS[name].items()}
        schedule = {"decay": {"name": name, **keys}, **self.some({
            "warmup": [{"steps": 2}], "cooldown": [{"steps": 1}], "by": ["step", "epoch"]})}
        if self.maybe(0.1):
            schedule["plateau"] = {"patience": 0, "factor": 0.5}
        self.recipe["schedule"] = schedule

    def add_updates(self):
        """What changes gradients, losses and weights beside the optimizer."""
        recipe = self.recipe
        if self.maybe(0.5):
            recipe["clip"] = self.draw.choice([{"norm": 0.5}, {"value": 0.01}, {"adaptive": 0.01}])
        if self.maybe(0.1):
            recipe["sam"] = {"rho": 0.05, "adaptive": self.maybe(0.5)}
        if self.maybe(0.2):
            recipe["ema"] = {"decay": self.draw.choice([0.9, [0.5, 0.9]]),
                             "every": self.draw.choice([1, 2]), "warmup": self.maybe(0.5)}
        elif self.maybe(0.15):
            recipe["swa"] = {"start": {"steps": 1}, "every": {"steps": 1},
                             "anneal": {"steps": 1}, **self.some({"lr": [1e-3]})}
        if self.reads_text:
            if self.maybe(0.3):
                recipe["loss"] = self.some({"label_smoothing": [0.1], "chunk": [3, 8]}) or None
        elif self.maybe(0.5):
            recipe["loss"] = {"name": self.draw.choice(
                ["cross_entropy", "binary_cross_entropy", "focal"])}
        if not self.reads_text and self.maybe(0.2):
            recipe["mix"] = {"mixup": 0.2, **self.some({"cutmix": [1.0]})}
        if self.maybe(0.1):
            has_bias = self.model["name"] not in ("llama", "mixtral")
            self.model["freeze"] = "*.bias" if has_bias else "*norm*"

    def add_costs(self):
        """Precision and what saves memory."""
        recipe = self.recipe
        recipe["precision"] = self.draw.choice(
            ["fp32"] * 5 + ["bf16", "bf16_pure", "fp16", "fp64", "tf32",
                            {"name": "bf16_pure", "update": "kahan"},
                            {"name": "fp8", "simulate": True}])
        if self.maybe(0.3):
            recipe["recompute"] = self.draw.choice([{"units": "all"}, {"every": 2}, {"match": "*"}])
        if self.maybe(0.1):
            recipe["offload"] = self.draw.choice([{"activations": True}, {"optimizer": True}])

    def add_communication(self):
        recipe = self.recipe
        if self.ranks > 1 and self.maybe(0.3):
            recipe["dist"] = {"cpu": self.draw.choice(["gloo", "shm"])}
        if "shard" in self.parallel and self.maybe(0.15):
            self.parallel["types"] = self.some({"parameters": ["bf16"], "reduce": ["bf16"]}) or {
                "reduce": "bf16"}
        if self.readers() == 1:
            return
        if self.maybe(0.25):
            recipe["compress"] = {"name": self.draw.choice(
                ["bf16", "fp16", "powersgd", "onebit", "int8"]), **self.some({"warmup": [1]})}
        if self.maybe(0.25):
            # Outer steps before and behind the cut, and local steps that are not over at the cut.
            name = self.draw.choice(["periodic", "diloco", "async"])
            recipe["sync"] = {"name": name, "steps": self.draw.choice([1, 2, 3])}
            if name == "diloco":
                recipe["sync"].update(self.some({"fragments": [2], "overlap": [1],
                                                 "outer": [{"lr": 0.7, "momentum": 0.9}]}))

    def add_checkpoint(self):
        self.recipe["checkpoint"] = {
            "every": {"steps": CUT}, "keep_last": 9, **self.some({
                "async": [False], "incremental": [True], "keep_best": [0, 1]})}
        if self.maybe(0.2):
            self.recipe["checkpoint"]["writers"] = self.draw.choice(["rank_0", "all"])

    def needs_worker(self):
        """Whether only a worker knows if the recipe fits the model."""
        precision = self.recipe["precision"]
        is_fp8 = isinstance(precision, dict) and precision["name"] == "fp8"
        return is_fp8 or "freeze" in self.model or "groups" in self.recipe["optimizer"]

    def complete(self, folder, name, **changes):
        """The recipe as a file of `folder`; a change of None leaves the key out."""
        if self.reads_text:
            data = {part: {"tokens": str(folder / f"{part}.bin")} for part in ("train", "val")}
            data["context"] = TOKENS
        else:
            data = {"train": {"shards": str(DIGITS / "train-{000000..000003}.tar")},
                    "val": {"shards": str(DIGITS / "val-000000.tar"), "limit": 24},
                    "image_size": 16, "index_cache": str(folder / "index")}
        recipe = {**self.recipe, "name": name, "data": data, "output": str(folder / name), **changes}
        path = folder / f"{name}.json"
        path.write_text(json.dumps({k: v for k, v in recipe.items() if v is not None}, indent=1))
        return path


def draft(seed, number):
    """Draft `number` of a seed. Every 20th seed has a large model."""
    name = MODELS[seed % len(MODELS)]
    if seed % 20 == 19:
        name = LARGE_MODELS[seed // 20 % len(LARGE_MODELS)]
    return Draft(random.Random(f"{seed}/{number}"), name, RANKS[seed % len(RANKS)])


def write_tokens(folder):
    for name, count in (("train", 1000), ("val", 130)):
        values = bytearray()
        for i in range(count):
            values += bytes([(i * i + i // 7) % (VOCABULARY - 2), 0])
        (folder / f"{name}.bin").write_bytes(bytes(values))
