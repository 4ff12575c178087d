"""BatchNorm's statistics: each rank's own in training and after a resume, their mean elsewhere."""

import io
import shutil
import tarfile
import unittest

import numpy
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file

from end_to_end import support

SIZE = 8  # the digits' own: nothing is resized
MEAN, STD = 0.25, 0.5
STEPS = 8


def held_out():
    """Images and labels of the validation set, as the model gets them."""
    images, labels = [], []
    with tarfile.open(support.DIGITS / "val-000000.tar") as tar:
        for member in tar:
            data = tar.extractfile(member).read()
            if member.name.endswith(".cls"):
                labels.append(int(data))
                continue
            pixels = torch.from_numpy(numpy.array(Image.open(io.BytesIO(data))))
            images.append(((pixels / 255 - MEAN) / STD).expand(3, SIZE, SIZE))
    return torch.stack(images), torch.tensor(labels)


class BatchNormTest(support.RunTestCase):
    def recipe(self, name="run", **changes):
        return super().recipe(name, **{
            "model": {"name": "mobilenet_v3_small", "num_classes": 10},
            "data": {"train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
                     "val": {"shards": str(support.DIGITS / "val-000000.tar")},
                     "image_size": SIZE, "index_cache": str(self.folder / "index"),
                     "normalize": {"mean": [MEAN] * 3, "std": [STD] * 3}},
            "batch": {"global": 32, "per_device": 16}, "steps": STEPS,
            "loss": {"label_smoothing": 0.1},
            "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
            "validate": {"every": {"steps": 4}},
            "checkpoint": {"every": {"steps": 4}, "async": False}, **changes})

    def tensors(self, run, step=STEPS, file="model"):
        return load_file(self.folder / run / f"checkpoints/step-{step:08}/{file}.safetensors")

    def killed(self, name="run", **changes):
        """A run of two ranks whose newest checkpoint is that of step 4."""
        recipe = self.recipe(name, **changes)
        self.run_scaletrain("launch", "--nproc", 2, recipe, env={"SCALETRAIN_FAULT": "kill@6"},
                            expect=137)
        return recipe

    def resume(self, ranks, recipe, fault=""):
        return self.run_scaletrain("launch", "--nproc", ranks, "--resume", "auto", recipe,
                                   env={"SCALETRAIN_FAULT": fault} if fault else None)

    def assert_same(self, one, other):
        self.assertEqual(sorted(one), sorted(other))
        for name, tensor in one.items():
            self.assertTrue(torch.equal(tensor, other[name]), name)

    def test_the_checkpoint_and_the_evaluation_have_the_mean(self):
        self.run_scaletrain("launch", "--nproc", 2, self.recipe())
        model, own = self.tensors("run"), self.tensors("run", file="buffers")
        self.assertEqual(sorted(own), [name for name in sorted(model) if "running_" in name or
                                       "num_batches" in name])
        for name, ranks in own.items():
            self.assertEqual(2, len(ranks), name)
            if name.endswith("num_batches_tracked"):
                self.assertEqual([STEPS, STEPS], ranks.tolist(), name)
            else:
                self.assertFalse(torch.equal(ranks[0], ranks[1]), name)
                self.assertTrue(torch.equal(ranks.double().mean(0).float(), model[name]), name)

        # Evaluated by torchvision with the weights of the checkpoint, and without label smoothing.
        peer = torchvision.models.mobilenet_v3_small(num_classes=10)
        peer.load_state_dict(model, strict=True)
        peer.eval()
        images, labels = held_out()
        with torch.no_grad():
            logits = peer(images)
        found = support.records(self.folder / "run", "eval")[-1]
        self.assertEqual((STEPS, 200), (found["step"], found["count"]))
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
        self.assertAlmostEqual(found["loss"], loss, delta=1e-5 * loss)
        self.assertAlmostEqual(found["top1"], (logits.argmax(1) == labels).float().mean().item())

    def test_saves_evaluations_and_resumes_change_nothing(self):
        alone = self.recipe("alone", validate={"every": {"steps": STEPS}},
                            checkpoint={"every": {"steps": STEPS}})
        self.run_scaletrain("launch", "--nproc", 2, alone)
        often = self.killed("often", validate={"every": {"steps": 1}},
                            checkpoint={"every": {"steps": 2}})
        self.resume(2, often)
        for file in ("model", "buffers", "optimizer"):
            self.assert_same(self.tensors("alone", file=file), self.tensors("often", file=file))

    def test_as_many_ranks_go_on_with_their_own_and_others_with_the_mean(self):
        recipe = self.killed()
        shutil.copytree(self.folder / "run", self.folder / "other", symlinks=True)
        # Steps that are left out: what is saved at the end is what was given back.
        self.resume(2, recipe, fault="nans@5")
        for file in ("model", "buffers"):
            self.assert_same(self.tensors("run", 4, file), self.tensors("run", STEPS, file))

        result = self.resume(1, self.recipe("other"), fault="nans@5")
        self.assertIn("ranks 1, was 2", result.stderr)
        self.assert_same(self.tensors("other", 4), self.tensors("other", STEPS))
        self.assertFalse((self.folder / "other/checkpoints/latest/buffers.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
