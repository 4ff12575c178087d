"""Runs with class weights and with many classes an image, on two ranks, give what PyTorch and
scikit-learn give of the whole set at once."""

import io
import json
import subprocess
import sys
import tarfile
import unittest

import numpy
import torch
from PIL import Image
from safetensors.torch import load_file
from sklearn.metrics import average_precision_score, f1_score
from torch.nn import functional

from end_to_end import support
from parity.twins import Twin

SAMPLES = 64  # one global batch
WEIGHTS = [0.01 * (1 + i) for i in range(10)]  # a batch's sum is below 1 at times
MODEL = {"name": "mlp", "num_classes": 13, "hidden": 32, "layers": 1}


def read_shard(path):
    """Images as fp32 in 0..1, [count, 3, 8, 8], and the labels as they are written."""
    images, labels = [], []
    with tarfile.open(path) as tar:
        for member in tar:
            data = tar.extractfile(member).read()
            if member.name.endswith(".cls"):
                labels.append(json.loads(data))
                continue
            image = numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
            images.append(torch.tensor(image).permute(2, 0, 1) / 255)
    return torch.stack(images), labels


def forward(state, images, normalize):
    """The logits of an mlp with one hidden layer."""
    mean, std = (torch.tensor(normalize[key]).view(1, 3, 1, 1) for key in ("mean", "std"))
    hidden = torch.relu(functional.linear(((images - mean) / std).flatten(1), state["fc1.weight"],
                                          state["fc1.bias"]))
    return functional.linear(hidden, state["head.weight"], state["head.bias"])


class LossRunsTest(support.RunTestCase):
    def digits(self, kind):
        folder = self.folder / "digits"
        subprocess.run([sys.executable, support.ROOT / "scripts/make_digits.py", *kind, folder],
                       check=True)
        return folder

    def train(self, name, data, nproc, **changes):
        path = self.recipe(name, data={**data, "image_size": 8}, device="cpu", **changes)
        self.run_scaletrain("launch", "--nproc", nproc, path)
        run = self.folder / name
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        state = load_file(run / "checkpoints/latest/model.safetensors")
        return path, json.loads((run / "recipe.json").read_text()), records, state

    def test_class_weights_are_those_of_one_large_batch(self):
        # All of a set of one batch: in whichever order.
        shard = self.digits([]) / "val-000000.tar"
        small = self.folder / "small.tar"
        with tarfile.open(shard) as tar, tarfile.open(small, "w") as out:
            for member in tar.getmembers()[:2 * SAMPLES]:
                out.addfile(member, tar.extractfile(member))
        images, labels = read_shard(small)
        for smoothing, mix in ((0.0, None), (0.1, None), (0.0, {"mixup": 1, "probability": 0})):
            with self.subTest(smoothing=smoothing, mix=mix):
                name = f"weights-{smoothing}-{bool(mix)}"
                path, recipe, records, state = self.train(
                    name, {"train": {"shards": str(small)}}, nproc=2, steps=1, mix=mix,
                    batch={"per_device": SAMPLES // 4, "accumulate": 2},
                    optimizer={"name": "sgd", "lr": 0.5, "momentum": 0, "weight_decay": 0},
                    loss={"class_weights": WEIGHTS, "label_smoothing": smoothing})
                Twin._run("init", path, self.folder / "initial.safetensors")
                peer = load_file(self.folder / "initial.safetensors")
                for value in peer.values():
                    value.requires_grad_()
                targets = torch.tensor(labels)
                if mix:  # nothing is mixed, and targets are shares, over whose number PyTorch takes the mean
                    targets = functional.one_hot(targets, 10).float()
                loss = functional.cross_entropy(
                    forward(peer, images, recipe["data"]["normalize"]), targets,
                    torch.tensor(WEIGHTS), label_smoothing=smoothing)
                loss.backward()
                trained = [record for record in records if record["event"] == "train"]
                self.assertAlmostEqual(trained[0]["loss"], loss.item(), places=5)
                for key, value in peer.items():
                    torch.testing.assert_close(state[key], (value - 0.5 * value.grad).detach(),
                                               rtol=1e-5, atol=1e-6)

    def test_many_classes_are_measured_as_scikit_learn_does(self):
        folder = self.digits(["--multi-label"])
        data = {"train": {"shards": str(folder / "train-{000000..000003}.tar")},
                "val": {"shards": str(folder / "val-000000.tar")}}
        for loss in ({"name": "binary_cross_entropy", "sum_classes": True}, {"name": "focal"}):
            for nproc in (1, 2):
                with self.subTest(loss["name"], nproc=nproc):
                    name = f"{loss['name']}-{nproc}"
                    _, recipe, records, state = self.train(
                        name, data, nproc, task="multi_label_classification", model=MODEL, steps=60,
                        optimizer={"name": "adamw", "lr": 0.003}, loss=loss,
                        mix={"mixup": 0.1})
                    self.check_measures(folder / "val-000000.tar", recipe, records, state)

    def check_measures(self, shard, recipe, records, state):
        images, labels = read_shard(shard)
        targets = torch.zeros(len(labels), MODEL["num_classes"])
        for row, classes in zip(targets, labels):
            row[classes] = 1
        with torch.no_grad():
            logits = forward(state, images, recipe["data"]["normalize"])
        found = logits > 0
        last = [record for record in records if record["event"] == "eval"][-1]
        self.assertEqual(len(labels), last["count"])
        self.assertAlmostEqual(
            last["map"], average_precision_score(targets, logits, average="macro"), places=5)
        for average in ("micro", "macro"):
            self.assertAlmostEqual(last[f"{average}_f1"], f1_score(
                targets, found, average=average, zero_division=0), places=5)
        if recipe["loss"]["name"] == "binary_cross_entropy":
            expected = functional.binary_cross_entropy_with_logits(logits, targets,
                                                                   reduction="sum") / len(labels)
            self.assertAlmostEqual(last["loss"], expected.item(), places=4)
        self.assertGreater(last["map"], 0.5)  # by chance: the classes' shares, 0.23 in the mean


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
