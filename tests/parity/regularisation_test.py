"""The running mean of weights is timm's and torch.optim.swa_utils', clipping timm's and PyTorch's,
and SAM's steps are those of the papers' formulas."""

import copy
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch
from safetensors.torch import load_file, save_file
from timm.utils import ModelEmaV3, adaptive_clip_grad
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, get_swa_multi_avg_fn

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "regularisation_program"
STEPS = 12
LEFT_OUT = (0, 5)


def run(command, keys, *inputs):
    """What the program writes for `inputs`, each a dictionary of tensors."""
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "recipe.json").write_text(json.dumps({
            "model": {"name": "mlp", "num_classes": 2}, "epochs": 1, "output": "unused",
            "data": {"train": {"shards": "unused.tar"}, "image_size": 8},
            "optimizer": {"name": "sgd", "lr": 0.1}, **keys}))
        for number, tensors in enumerate(inputs):
            save_file({name: value.contiguous() for name, value in tensors.items()},
                      folder / str(number))
        done = subprocess.run(
            [PROGRAM, command, folder / "recipe.json", *(folder / str(i) for i in range(len(inputs))),
             folder / "out"], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise AssertionError(done.stderr)
        return load_file(folder / "out")


def network():
    torch.manual_seed(2)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(),
                               torch.nn.Linear(16, 5))


def trained_models():
    """The state of a small network after each of some steps, its BatchNorm's buffers too."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
    states = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(8, 3, 4, 4)).square().mean().backward()
        optimizer.step()
        states.append({name: value.clone() for name, value in model.state_dict().items()})
    return states


class EmaTest(unittest.TestCase):
    def compare(self, keys, update, left_out=(), kind="ema", is_due=None):
        """`update` is given the peer's model, as it is after a step, and the number of that step."""
        states = trained_models()
        for step in left_out:  # as a step that is left out: the weights of before, by chance finite
            states[step] = {name: value.clone() for name, value in states[max(step - 1, 0)].items()}
        peer = network()
        for step, state in enumerate(states):
            peer.load_state_dict(state)
            due = is_due(step) if is_due else (step + 1) % keys.get("every", 1) == 0
            if step not in left_out and due:
                update(peer)
        found_inf = torch.zeros(STEPS).index_fill_(0, torch.tensor(left_out, dtype=torch.long), 1)
        stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
        return run("mean", {kind: keys}, {**stacked, "found_inf": found_inf})

    def check(self, ours, expected):
        self.assertEqual(ours.keys(), expected.keys())
        for name, value in expected.items():
            self.assertTrue(torch.equal(ours[name], value), name)

    def test_the_mean_with_a_warmup_is_timms(self):
        for keys in ({"decay": 0.7, "warmup": True}, {"decay": 0.999, "warmup": True},
                     {"decay": 0.9, "warmup": True, "every": 3}, {"decay": 0.99}):
            for left_out in ((), LEFT_OUT):
                with self.subTest(keys, left_out=left_out):
                    average = ModelEmaV3(network(), decay=keys["decay"],
                                         use_warmup=keys.get("warmup", False))
                    updates = iter(range(1, STEPS + 1))
                    ours = self.compare(
                        keys, lambda model: average.update(model, step=next(updates)), left_out)
                    self.check(ours, average.module.state_dict())

    def test_without_a_warmup_it_is_pytorchs(self):
        average = AveragedModel(network(), multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
        ours = self.compare({"decay": 0.9}, average.update_parameters)
        expected = average.module.state_dict()
        # PyTorch would average the count of batches too.
        self.assertEqual(STEPS, ours.pop("1.num_batches_tracked").item())
        expected.pop("1.num_batches_tracked")
        self.check(ours, expected)

    def test_an_equal_mean_is_pytorchs(self):
        for left_out in ((), LEFT_OUT):
            average = AveragedModel(network(), multi_avg_fn=get_swa_multi_avg_fn())
            # The weights after steps 3, 5, 7, ...
            ours = self.compare({"start": {"steps": 3}, "every": {"steps": 2}},
                                average.update_parameters, left_out, "swa",
                                lambda step: step >= 2 and step % 2 == 0)
            expected = dict(average.module.named_parameters())
            self.check({name: ours[name] for name in expected}, expected)


SHAPES = {"bias": (5,), "scalar": (), "matrix": (6, 4), "kernel": (4, 3, 3, 3), "head.weight": (2, 3),
          "head.bias": (2,), "tiny": (3, 2), "zero": (3, 2)}


def drawn():
    generator = torch.Generator().manual_seed(1)
    parameters = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    gradients = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
    gradients["kernel"] *= 0.01  # some units stay below their limit
    parameters["kernel"] *= torch.tensor([1e-5, 0.01, 1, 100]).view(4, 1, 1, 1)
    gradients["tiny"] *= 1e-7
    gradients["zero"] *= 0
    return parameters, gradients


class ClipTest(unittest.TestCase):
    def compare(self, clip, limit):
        parameters, gradients = drawn()
        ours = run("clip", {"clip": clip}, parameters, gradients)
        peer = {name: torch.nn.Parameter(value) for name, value in parameters.items()}
        for name, parameter in peer.items():
            parameter.grad = gradients[name].clone()
        limit(peer)
        changed = 0
        for name, parameter in peer.items():
            torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-6, atol=0, msg=name)
            changed += not torch.equal(parameter.grad, gradients[name])
        self.assertGreater(changed, 1)

    def test_by_norm(self):
        self.compare({"norm": 0.5},
                     lambda peer: torch.nn.utils.clip_grad_norm_(peer.values(), 0.5))

    def test_by_value(self):
        self.compare({"value": 0.5},
                     lambda peer: torch.nn.utils.clip_grad_value_(peer.values(), 0.5))

    def test_by_the_size_of_the_weights(self):
        for factor in (1e-4, 0.01, 0.3):
            with self.subTest(factor):
                self.compare({"adaptive": factor}, lambda peer: adaptive_clip_grad(
                    [value for name, value in peer.items() if not name.startswith("head.")],
                    clip_factor=factor))


def sam_step(parameters, loss, rho, adaptive, lr):
    """Foret et al. 2021, equations 2 and 3; adaptive: Kwon et al. 2021, equation 7."""
    gradients = torch.autograd.grad(loss(), parameters)
    sizes = [p.abs() if adaptive else torch.ones_like(p) for p in parameters]
    norm = torch.stack([(s * g).norm() for s, g in zip(sizes, gradients)]).norm()
    before = copy.deepcopy([p.data for p in parameters])
    for parameter, size, gradient in zip(parameters, sizes, gradients):
        parameter.data += rho * size.data ** 2 * gradient / (norm + 1e-12)
    gradients = torch.autograd.grad(loss(), parameters)
    for parameter, start, gradient in zip(parameters, before, gradients):
        parameter.data = start - lr * gradient


class SamTest(unittest.TestCase):
    def test_steps(self):
        generator = torch.Generator().manual_seed(6)
        start = {"weight": torch.randn(3, 4, generator=generator),
                 "scale": torch.randn(3, generator=generator),
                 "bias": torch.randn(3, generator=generator)}
        inputs = torch.randn(STEPS, 7, 4, generator=generator)
        for sam in ({"rho": 0.05}, {"rho": 0.7}, {"rho": 0.5, "adaptive": True}):
            with self.subTest(sam):
                ours = run("sam", {"sam": sam}, start, {"inputs": inputs})
                peer = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
                for batch in inputs:
                    sam_step(list(peer.values()),
                             lambda: (torch.tanh(batch @ peer["weight"].T) * peer["scale"]
                                      + peer["bias"]).square().mean(),
                             sam["rho"], sam.get("adaptive", False), lr=0.1)
                for name, value in peer.items():
                    torch.testing.assert_close(ours[name], value.data, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    unittest.main()
