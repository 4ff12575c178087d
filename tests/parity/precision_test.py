"""The loss scale of fp16, and which steps it leaves out, are torch.amp.GradScaler's."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
from safetensors.torch import load_file, save_file

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "precision_program"
STEPS = 40
LR = 0.1


def ours(keys, weight, gradients):
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "recipe.json").write_text(json.dumps({
            "model": {"name": "mlp", "num_classes": 2}, "epochs": 1, "output": "unused",
            "data": {"train": {"shards": "unused.tar"}, "image_size": 8},
            "optimizer": {"name": "sgd", "lr": LR, "momentum": 0.9},
            "precision": {"name": "fp16", **keys}}))
        save_file({"weight": weight, "gradients": gradients}, folder / "in")
        done = subprocess.run([PROGRAM, folder / "recipe.json", folder / "in", folder / "out"],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise AssertionError(done.stderr)
        return load_file(folder / "out")


def theirs(keys, weight, gradients):
    weight = weight.clone().requires_grad_(True)
    optimizer = torch.optim.SGD([weight], LR, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", **keys)
    weights, scales, trackers = [], [], []
    for gradient in gradients:
        optimizer.zero_grad()
        scaler.scale((weight * gradient).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        weights.append(weight.detach().clone())
        scales.append(scaler.get_scale())
        trackers.append(scaler.state_dict()["_growth_tracker"])
    return {"weights": torch.stack(weights), "scales": torch.tensor(scales, dtype=torch.float64),
            "trackers": torch.tensor(trackers, dtype=torch.float64)}


class LossScaleTest(unittest.TestCase):
    def check(self, bad, **keys):
        torch.manual_seed(1)
        weight, gradients = torch.randn(9), torch.randn(STEPS, 9)
        for step, value in bad.items():
            gradients[step, step % 9] = value
        ours_, theirs_ = ours(keys, weight, gradients), theirs(keys, weight, gradients)
        for name in ("scales", "trackers"):
            self.assertEqual(ours_[name].tolist(), theirs_[name].tolist(), name)
        torch.testing.assert_close(ours_["weights"], theirs_["weights"], rtol=1e-5, atol=1e-6)
        self.assertGreater(len(set(ours_["scales"].tolist())), 1)  # it moved
        for step in bad:
            if step > 0:
                self.assertTrue(torch.equal(ours_["weights"][step], ours_["weights"][step - 1]))

    def test_grows_and_falls(self):
        inf, nan = float("inf"), float("nan")
        self.check({0: inf, 7: nan, 8: -inf, 20: inf}, init_scale=1024.0, growth_interval=4)

    def test_defaults(self):
        self.check({3: float("inf")})

    def test_other_factors(self):
        self.check({5: float("nan"), 6: float("nan")}, init_scale=3.0, growth_factor=1.5,
                   backoff_factor=0.3, growth_interval=2)

    def test_a_scale_that_would_not_be_finite_stays(self):
        self.check({1: float("inf")}, init_scale=1e30, growth_factor=1000.0, growth_interval=1)


if __name__ == "__main__":
    unittest.main()
