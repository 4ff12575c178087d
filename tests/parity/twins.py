"""The same models in Python, and the parity program run on the same tensors."""

import json
import os
import pathlib
import subprocess

import torch
import torchvision
from safetensors.torch import load_file, save_file
from timm.models.vision_transformer import VisionTransformer

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "parity_program"
IMAGE_SIZE = 32
NUM_CLASSES = 10


def peer_model(name, **options):
    """The model `name` of torchvision or timm, initialised by it; `options` are the recipe's."""
    if name == "vit_tiny":
        return VisionTransformer(img_size=IMAGE_SIZE, patch_size=4, embed_dim=192, num_heads=3,
                                 num_classes=NUM_CLASSES, **{"depth": 12, **options})
    return getattr(torchvision.models, name)(num_classes=NUM_CLASSES, **options)


class Twin:
    """Our program for one recipe, with its files in `folder`."""

    def __init__(self, folder, model, options=None, **sections):
        self.folder = pathlib.Path(folder)
        recipe = {
            "seed": 1234,
            "model": {"name": model, **(options or {})},
            "epochs": 1,
            "precision": "fp32",
            "optimizer": {"name": "sgd", "lr": 0.1},
            "output": "unused",
        }
        if model == "gpt2":
            recipe["data"] = {"train": {"tokens": "unused.bin"}, "context": 8}
        else:
            recipe["model"].setdefault("num_classes", NUM_CLASSES)
            recipe["data"] = {"train": {"shards": "unused.tar"}, "image_size": IMAGE_SIZE}
        recipe.update(sections)
        self.recipe = self.folder / "recipe.json"
        self.recipe.write_text(json.dumps(recipe))

    def initial_state(self):
        out = self.folder / "initial.safetensors"
        self._run("init", self.recipe, out)
        return load_file(out)

    def logits(self, state, inputs):
        """inputs: images, or tokens of a language model."""
        out = self.folder / "logits.safetensors"
        self._run("logits", self.recipe, self._save("weights", state),
                  self._save("input", {"inputs": inputs}), out)
        return load_file(out)["logits"]

    def gradients(self, state, inputs, targets):
        """Of the mean loss over one batch, by the parameters' names."""
        out = self.folder / "gradients.safetensors"
        self._run("gradients", self.recipe, self._save("weights", state),
                  self._save("batch", {"inputs": inputs, "targets": targets}), out)
        return load_file(out)

    def losses(self, state, inputs, targets, **more):
        """The loss of each step; inputs [steps, batch, ...], targets [steps, batch, ...];
        `more`: further tensors of the program's batches."""
        text = self._run("train", self.recipe, self._save("weights", state),
                         self._save("batches", {"inputs": inputs, "targets": targets, **more}))
        return [float(line) for line in text.splitlines()]

    def mixed(self, images, targets):
        """Images, targets and pairs of the recipe's mix of a batch."""
        out = self.folder / "mixed.safetensors"
        self._run("mix", self.recipe, self._save("batch", {"images": images, "targets": targets}), out)
        mixed = load_file(out)
        return mixed["images"], mixed["targets"], mixed["pairs"]

    def _save(self, name, tensors):
        path = self.folder / f"{name}.safetensors"
        save_file({key: value.detach().contiguous().clone() for key, value in tensors.items()}, path)
        return path

    @staticmethod
    def _run(*arguments):
        # One thread: two that wait for each other on a busy machine take many times as long.
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=600,
                              env=dict(os.environ, OMP_NUM_THREADS="1"))
        if done.returncode != 0:
            raise AssertionError(f"parity_program ended with {done.returncode}: {done.stderr}")
        return done.stdout


def disturb(state, generator):
    """Moves every tensor away from its initial value, as training does: norms and biases too."""
    result = {}
    for name, value in state.items():
        if name.endswith("num_batches_tracked"):
            result[name] = torch.tensor(17)
        elif name.endswith("running_var"):
            result[name] = value * (0.5 + torch.rand(value.shape, generator=generator))
        else:
            noise = torch.randn(value.shape, generator=generator)
            scale = 0.1 if value.dim() < 2 else 0.1 * value.std().item()
            result[name] = value + scale * noise
    return result


def images(generator, *batch):
    return torch.randn(*batch, 3, IMAGE_SIZE, IMAGE_SIZE, generator=generator)
