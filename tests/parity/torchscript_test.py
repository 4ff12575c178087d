"""A model written in Python trains natively: its tensors, gradients and losses are Python's."""

import pathlib
import tempfile
import unittest

import torch

from end_to_end import support
from parity.twins import IMAGE_SIZE, NUM_CLASSES, Twin, images
from safetensors.torch import load_file

STEPS = 10
LR = 0.05


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=4), torch.nn.BatchNorm2d(8),
                                            torch.nn.ReLU())
        self.head = torch.nn.Linear(8 * 8 * 8, NUM_CLASSES)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class FixedBatch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(3 * IMAGE_SIZE * IMAGE_SIZE, NUM_CLASSES)

    def forward(self, x):
        return self.head(x.reshape(8, -1))


class NoParameters(torch.nn.Module):
    def forward(self, x):
        return x.flatten(1)[:, :10]


class TorchScriptTest(support.RunTestCase):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.model = Small().train()
        generator = torch.Generator().manual_seed(2)
        self.inputs = images(generator, STEPS, 8)
        self.targets = torch.randint(NUM_CLASSES, (STEPS, 8), generator=generator)

    def files(self):
        """The model as both kinds of file."""
        scripted, traced = self.folder / "scripted.pt", self.folder / "traced.pt"
        torch.jit.script(self.model).save(scripted)
        state = {name: value.clone() for name, value in self.model.state_dict().items()}
        torch.jit.trace(self.model, self.inputs[0], check_trace=False).save(traced)
        self.model.load_state_dict(state)  # tracing moved the running statistics
        return {"script": scripted, "trace": traced}

    def twin(self, file):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        return Twin(folder, "torchscript", {"file": str(file)}, optimizer={"name": "sgd", "lr": LR, "momentum": 0.0})

    def test_tensors_gradients_and_losses_are_pythons(self):
        files = self.files()
        state = {name: value.clone() for name, value in self.model.state_dict().items()}
        criterion = torch.nn.CrossEntropyLoss()
        criterion(self.model(self.inputs[0]), self.targets[0]).backward()
        gradients = {name: value.grad.clone() for name, value in self.model.named_parameters()}
        self.model.load_state_dict(state)
        optimizer = torch.optim.SGD(self.model.parameters(), lr=LR)
        losses = []
        for batch, target in zip(self.inputs, self.targets):
            loss = criterion(self.model(batch), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        for kind, file in files.items():
            with self.subTest(kind):
                twin = self.twin(file)
                initial = twin.initial_state()
                self.assertEqual(sorted(state), sorted(initial))
                if kind == "script":
                    for name, value in state.items():
                        torch.testing.assert_close(initial[name], value.to(initial[name].dtype),
                                                   rtol=0, atol=0)
                ours = twin.gradients(state, self.inputs[0], self.targets[0])
                self.assertEqual(sorted(gradients), sorted(ours))
                for name, value in gradients.items():
                    torch.testing.assert_close(ours[name], value, rtol=1e-5, atol=1e-6, msg=name)
                for step, loss in enumerate(twin.losses(state, self.inputs, self.targets)):
                    self.assertAlmostEqual(loss, losses[step], delta=1e-4 * losses[step], msg=step)

    def test_what_cannot_be_trained_ends_with_65_and_its_reason(self):
        file = self.folder / "model.pt"
        torch.jit.trace(FixedBatch(), self.inputs[0]).save(file)
        with self.assertRaisesRegex(AssertionError, r"ended with 65: .*model.pt: for images "
                                    r"\[2, 3, 32, 32\] logits \[2, 10\] are expected, and forward"):
            self.twin(file).initial_state()
        torch.jit.script(NoParameters()).save(file)
        with self.assertRaisesRegex(AssertionError, "ended with 65: .*: has no parameters to train"):
            self.twin(file).initial_state()
        torch.save(self.model.state_dict(), file)
        with self.assertRaisesRegex(AssertionError, "ended with 65: .*: is not a TorchScript file"):
            self.twin(file).initial_state()

    def test_a_run_by_the_launcher(self):
        file = self.files()["script"]
        recipe = self.recipe("run", model={"name": "torchscript", "file": str(file),
                                           "num_classes": NUM_CLASSES},
                             data={"train": {"shards": str(support.DIGITS / "train-000000.tar")},
                                   "val": {"shards": str(support.DIGITS / "val-000000.tar")},
                                   "image_size": IMAGE_SIZE,
                                   "index_cache": str(self.folder / "index")},
                             batch={"per_device": 16}, steps=4, precision="fp32",
                             optimizer={"name": "sgd", "lr": LR, "momentum": 0.0})
        self.run_scaletrain("launch", "--nproc", 2, recipe)
        tensors = load_file(self.folder / "run/checkpoints/latest/model.safetensors")
        self.assertEqual(sorted(self.model.state_dict()), sorted(tensors))
        self.assertFalse(torch.equal(tensors["head.weight"], self.model.head.weight))

        file.unlink()
        done = self.run_scaletrain("launch", "--nproc", 1, "--set",
                                   f"output={self.folder / 'second'}", recipe, expect=65)
        self.assertIn("/model/file: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
