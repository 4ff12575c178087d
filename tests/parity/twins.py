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
            "model": {"name": model, "num_classes": NUM_CLASSES, **(options or {})},
            "data": {"train": {"shards": "unused.tar"}, "image_size": IMAGE_SIZE},
            "epochs": 1,
            "precision": "fp32",
            "optimizer": {"name": "sgd", "lr": 0.1},
            "output": "unused",
        }
        recipe.update(sections)
        self.recipe = self.folder / "recipe.json"
        self.recipe.write_text(json.dumps(recipe))

    def initial_state(self):
        out = self.folder / "initial.safetensors"
        self._run("init", self.recipe, out)
        return load_file(out)

    def logits(self, state, images):
        out = self.folder / "logits.safetensors"
        self._run("logits", self.recipe, self._save("weights", state),
                  self._save("input", {"images": images}), out)
        return load_file(out)["logits"]

    def losses(self, state, images, targets):
        """The loss of each step; images [steps, batch, 3, size, size], targets [steps, batch]."""
        text = self._run("train", self.recipe, self._save("weights", state),
                         self._save("batches", {"images": images, "targets": targets}))
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


def images(generator, *batch):
    return torch.randn(*batch, 3, IMAGE_SIZE, IMAGE_SIZE, generator=generator)
