"""Twenty steps of `scaletrain launch` are those of a plain PyTorch loop over the same samples.

Nothing of the loop is written again on our side: losses and norms are those of metrics.jsonl, the
parameters those of the checkpoint. The optimizer is SGD: Adam would hide a factor in the gradients.
"""

import subprocess
import unittest

import numpy
import torch
from safetensors.torch import load_file

from end_to_end import support
from parity.twins import NUM_CLASSES, Twin

STEPS = 20
GLOBAL_BATCH = 32
SIZE = 8  # the digits' own: nothing is resized
SEED = 7
HIDDEN = 48
LR = 0.05
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
SMOOTHED = {"name": "cross_entropy", "label_smoothing": 0.1}
MIX = {"mixup": 0.8, "cutmix": 1.0}
CLIP = 2.0  # below the norms of some steps and above others
CASES = {
    "plain, one rank": (1, {"per_device": 32}, {}),
    "accumulated, one rank": (1, {"per_device": 8, "accumulate": 4}, {"loss": SMOOTHED}),
    "clipped, two ranks": (2, {"per_device": 16}, {"clip": {"norm": CLIP}}),
    "mixed, two ranks": (2, {"per_device": 16}, {"mix": MIX}),
    "all, one rank": (1, {"per_device": 16, "accumulate": 2},
                      {"loss": SMOOTHED, "clip": {"norm": CLIP}, "mix": MIX}),
    "all, two ranks": (2, {"per_device": 8, "accumulate": 2},
                       {"loss": SMOOTHED, "clip": {"norm": CLIP}, "mix": MIX}),
    # MEAN, STD and the weights are numbers that fp32 does not hold exactly.
    "fp64, two ranks": (2, {"per_device": 8, "accumulate": 2}, {
        "precision": "fp64", "clip": {"norm": CLIP}, "loss": {
            "label_smoothing": 0.1, "class_weights": [0.1 * (1 + i % 3) for i in range(NUM_CLASSES)]}}),
}


class Peer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(3 * SIZE * SIZE, HIDDEN)
        self.head = torch.nn.Linear(HIDDEN, NUM_CLASSES)

    def forward(self, images):
        return self.head(self.fc1(images.flatten(1)).relu())


def trained_by_pytorch(model, images, targets, sections):
    """(loss, norm of the gradients) of each step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    loss_keys = sections.get("loss", {})
    weights = loss_keys.get("class_weights")
    criterion = torch.nn.CrossEntropyLoss(
        None if weights is None else torch.tensor(weights, dtype=images.dtype),
        label_smoothing=loss_keys.get("label_smoothing", 0.0))
    clip = sections.get("clip", {}).get("norm", float("inf"))
    steps = []
    for batch, target in zip(images.split(GLOBAL_BATCH), targets.split(GLOBAL_BATCH)):
        loss = criterion(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        steps.append((loss.item(), norm.item()))
    return steps


class TrainingTest(support.RunTestCase):
    def samples(self, recipe, ranks):
        """Normalised images and labels in the order of their positions."""
        def ask(command):
            arguments = [support.BIN / "data_program", command, recipe, ranks, 1, 0, STEPS]
            return subprocess.run([*map(str, arguments)], check=True, capture_output=True,
                                  timeout=60).stdout

        rows = [[*map(int, line.split()[:3])] for line in ask("content").decode().splitlines()]
        order = sorted(range(len(rows)), key=lambda i: rows[i])  # of epoch and position
        self.assertEqual([[0, i] for i in range(STEPS * GLOBAL_BATCH)],
                         [rows[i][:2] for i in order])
        pixels = numpy.frombuffer(ask("pixels"), numpy.uint8).reshape(-1, SIZE, SIZE, 3)
        images = (pixels[order] / 255 - MEAN) / STD
        return (torch.from_numpy(images).permute(0, 3, 1, 2),
                torch.tensor([rows[i][2] for i in order]))

    def check(self, name, ranks, batch, sections):
        model = {"name": "mlp", "num_classes": NUM_CLASSES, "hidden": HIDDEN, "layers": 1}
        data = {"train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
                "image_size": SIZE, "index_cache": str(self.folder / "index"),
                "normalize": {"mean": MEAN, "std": STD}}
        sections = {"precision": "fp32", **sections}
        is_double = sections["precision"] == "fp64"
        dtype, least = (torch.double, 1e-11) if is_double else (torch.float, 1e-4)
        recipe = self.recipe(name, seed=SEED, model=model, data=data, batch=batch, steps=STEPS,
                             optimizer={"name": "sgd", "lr": LR, "momentum": 0.9}, **sections)
        self.run_scaletrain("launch", "--nproc", ranks, recipe)

        twin = Twin(self.folder, "mlp", {"hidden": HIDDEN, "layers": 1}, seed=SEED, data=data,
                    **sections)
        images, targets = self.samples(recipe, ranks)
        images = images.to(dtype)
        if "mix" in sections:  # parity/mix_test.py compares it with timm
            images, targets, _ = twin.mixed(images, targets)
        peer = Peer()
        peer.load_state_dict(twin.initial_state(), strict=True)
        peer.to(dtype)
        expected = trained_by_pytorch(peer, images, targets, sections)
        if "clip" in sections:
            clipped = sum(norm > CLIP for _, norm in expected)
            self.assertTrue(0 < clipped < STEPS, f"{clipped} of {STEPS} steps are clipped")

        steps = support.records(self.folder / name, "train")
        self.assertEqual(list(range(1, STEPS + 1)), [step["step"] for step in steps])
        for step, (loss, norm) in zip(steps, expected):
            self.assertAlmostEqual(step["loss"], loss, delta=least * loss, msg=step["step"])
            self.assertAlmostEqual(step["grad_norm"], norm, delta=least * norm, msg=step["step"])
        ours = load_file(self.folder / name / "checkpoints/latest/model.safetensors")
        self.assertEqual(sorted(ours), sorted(peer.state_dict()))
        for name, value in peer.state_dict().items():
            torch.testing.assert_close(ours[name], value, rtol=least, atol=least / 10, msg=name)

    def test_twenty_steps(self):
        torch.set_num_threads(1)
        for number, (case, arguments) in enumerate(CASES.items()):
            with self.subTest(case):
                self.check(f"run-{number}", *arguments)


if __name__ == "__main__":
    unittest.main()
