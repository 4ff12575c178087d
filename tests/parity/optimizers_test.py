"""Twenty steps of every optimizer on given gradients are those of torch.optim, of timm.optim or of the
paper's formula, on tensors of every rank, with and without weight decay, in groups of their own learning
rate, and with steps that are left out."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import timm.optim
import torch
from safetensors.torch import load_file, save_file

import optimizer_peers as peers

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "optimizer_program"
ROWS = pathlib.Path(__file__).parents[2] / "lib/recipe/catalog/optimizers.def"
STEPS = 20
LEFT_OUT = (0, 7)
LR, DECAY = 0.01, 0.05
SHAPES = {"scalar": (), "bias": (5,), "matrix": (6, 4), "tall": (9, 2), "cube": (2, 3, 4),
          "kernel": (4, 3, 3, 3), "blocks": (33, 21), "own.kernel": (3, 2, 2, 2), "own.bias": (7,)}
OWN = {"lr_scale": 0.5, "weight_decay": 0.2}  # of "own.*"

torch_optim, timm_optim = torch.optim, timm.optim
# name -> keys of our recipe, the peer
CASES = {
    "sgd": ({"momentum": 0.9, "nesterov": True},
            lambda p, lr: torch_optim.SGD(p, lr, momentum=0.9, nesterov=True)),
    "adam": ({"beta1": 0.8, "eps": 1e-6},
             lambda p, lr: torch_optim.Adam(p, lr, betas=(0.8, 0.999), eps=1e-6)),
    "adamw": ({}, lambda p, lr: torch_optim.AdamW(p, lr)),
    "nadam": ({}, lambda p, lr: torch_optim.NAdam(p, lr)),
    "nadam decoupled": ({"decoupled": True, "momentum_decay": 0.1, "beta2": 0.9},
                        lambda p, lr: torch_optim.NAdam(p, lr, betas=(0.9, 0.9), momentum_decay=0.1,
                                                        decoupled_weight_decay=True)),
    "radam": ({}, lambda p, lr: torch_optim.RAdam(p, lr)),
    # Adapts from the sixth step on, PyTorch's default with 0.999 too; here at once.
    "radam decoupled": ({"decoupled": True, "beta2": 0.9, "beta1": 0.7},
                        lambda p, lr: torch_optim.RAdam(p, lr, betas=(0.7, 0.9),
                                                        decoupled_weight_decay=True)),
    "lamb": ({}, lambda p, lr: timm_optim.Lamb(p, lr, max_grad_norm=None)),
    "lamb clipped": ({"always_adapt": True, "trust_clip": True},
                     lambda p, lr: timm_optim.Lamb(p, lr, max_grad_norm=None, always_adapt=True,
                                                   trust_clip=True)),
    "lars": ({}, lambda p, lr: timm_optim.Lars(p, lr, momentum=0.9)),
    "lars nesterov": ({"nesterov": True, "always_adapt": True, "trust_clip": True,
                       "trust_coefficient": 0.02},
                      lambda p, lr: timm_optim.Lars(p, lr, momentum=0.9, nesterov=True,
                                                    always_adapt=True, trust_clip=True,
                                                    trust_coeff=0.02)),
    "lion": ({}, lambda p, lr: timm_optim.Lion(p, lr)),
    "rmsprop": ({}, lambda p, lr: torch_optim.RMSprop(p, lr)),
    "rmsprop centered": ({"centered": True, "momentum": 0.8},
                         lambda p, lr: torch_optim.RMSprop(p, lr, centered=True, momentum=0.8)),
    "rmsprop_tf": ({}, lambda p, lr: timm_optim.RMSpropTF(p, lr, alpha=0.9, eps=1e-10)),
    "rmsprop_tf momentum": ({"momentum": 0.9, "centered": True, "eps": 1e-3},
                            lambda p, lr: timm_optim.RMSpropTF(p, lr, alpha=0.9, eps=1e-3,
                                                               momentum=0.9, centered=True)),
    "adagrad": ({}, lambda p, lr: torch_optim.Adagrad(p, lr)),
    "adagrad decayed": ({"lr_decay": 0.1, "initial_accumulator_value": 0.5},
                        lambda p, lr: torch_optim.Adagrad(p, lr, lr_decay=0.1,
                                                          initial_accumulator_value=0.5)),
    "adamw centralized": ({"centralize_gradients": True},
                          lambda p, lr: peers.Centralized(torch_optim.AdamW(p, lr))),
    "lars centralized": ({"centralize_gradients": True},
                         lambda p, lr: peers.Centralized(timm_optim.Lars(p, lr, momentum=0.9))),
    "muon": ({}, peers.Muon),
    "muon plain": ({"nesterov": False, "ns_steps": 3, "momentum": 0.8, "adamw_lr": 0.003,
                    "adjust_lr_fn": "match_rms_adamw"},
                   lambda p, lr: peers.Muon(p, lr, adamw_lr=0.003, nesterov=False, ns_steps=3,
                                            momentum=0.8, adjust_lr_fn="match_rms_adamw")),
    "adafactor": ({}, lambda p, lr: torch_optim.Adafactor(p, lr)),
    "adafactor keys": ({"beta2_decay": -0.5, "eps": 0.9, "clip_threshold": 1.02},
                       lambda p, lr: torch_optim.Adafactor(p, lr, beta2_decay=-0.5, d=1.02,
                                                           eps=(None, 0.9))),
    "schedule_free_adamw": ({}, peers.ScheduleFreeAdamW),
    "schedule_free_adamw keys": ({"beta1": 0.7, "beta2": 0.9, "eps": 1e-3, "weight_lr_power": 0},
                                 lambda p, lr: peers.ScheduleFreeAdamW(p, lr, 0.7, 0.9, 1e-3, 0)),
    "adamw_8bit": ({"min_8bit_size": 0}, peers.AdamW8bit),
    "adamw_8bit small": ({"min_8bit_size": 1000}, lambda p, lr: torch_optim.AdamW(p, lr)),
    "soap": ({}, peers.Soap),
    "soap one side": ({"max_dim": 6, "frequency": 8},
                      lambda p, lr: peers.Soap(p, lr, frequency=8, max_dim=6)),
    "lion_8bit": ({"min_8bit_size": 0}, peers.Lion8bit),
    "lion_8bit small": ({"min_8bit_size": 1000}, lambda p, lr: timm_optim.Lion(p, lr)),
}


def by_the_peer(make, start, gradients, lr, left_out):
    """The parameters after all steps; what has at most one dimension has no weight decay, and what is
    "own" has its own."""
    parameters = {name: torch.nn.Parameter(value.clone()) for name, value in start.items()}
    plain = [p for name, p in parameters.items() if not name.startswith("own.")]
    own = [p for name, p in parameters.items() if name.startswith("own.")]
    groups = [{"params": [p for p in plain if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in plain if p.dim() <= 1], "weight_decay": 0.0},
              {"params": own, "weight_decay": OWN["weight_decay"], "lr": lr * OWN["lr_scale"]}]
    optimizer = make(groups, lr)
    for step in range(STEPS):
        for name, parameter in parameters.items():
            parameter.grad = gradients[name][step].clone()
        if step not in left_out:
            optimizer.step()
        elif hasattr(optimizer, "leave_out"):
            optimizer.leave_out()
    results = {name: parameter.detach() for name, parameter in parameters.items()}
    if hasattr(optimizer, "evaluated"):
        results |= {f"evaluated/{name}": optimizer.evaluated(p) for name, p in parameters.items()}
    return results


class OptimizersTest(unittest.TestCase):
    def ours(self, cases, start, gradients):
        """The parameters after all steps of each (case, left_out), by one run of the program."""
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            save_file(start, folder / "start")
            words, outs = [], []
            for number, (case, left_out) in enumerate(cases):
                recipe, given, out = (folder / f"{name}{number}" for name in ("recipe", "given", "out"))
                recipe.write_text(json.dumps({
                    "model": {"name": "mlp", "num_classes": 2}, "epochs": 1, "output": "unused",
                    "data": {"train": {"shards": "unused.tar"}, "image_size": 8},
                    "optimizer": {"name": case.split()[0], "lr": LR, "weight_decay": DECAY,
                                  "groups": [{"match": "own.*", **OWN}], **CASES[case][0]}}))
                found_inf = torch.zeros(STEPS, dtype=torch.float)
                poisoned = {key: value.clone() for key, value in gradients.items()}
                for step in left_out:
                    found_inf[step] = 1
                    poisoned["matrix"][step, 0, 0] = float("nan")
                    poisoned["bias"][step] = float("inf")
                save_file({**poisoned, "found_inf": found_inf}, given)
                words += [recipe, given, out]
                outs.append(out)
            done = subprocess.run([PROGRAM, folder / "start", *words], capture_output=True, text=True,
                                  timeout=300)
            self.assertEqual(0, done.returncode, done.stderr)
            return list(map(load_file, outs))

    def check(self, cases, dtype, least, gradient_scale=1.0):
        """`least`: the largest relative difference of a tensor after all steps."""
        torch.set_default_dtype(dtype)  # of PyTorch's own scalars, such as NAdam's product
        self.addCleanup(torch.set_default_dtype, torch.float)
        generator = torch.Generator().manual_seed(3)
        start = {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}
        gradients = {name: torch.randn(STEPS, *shape, generator=generator) * gradient_scale
                     for name, shape in SHAPES.items()}
        for (case, left_out), ours in zip(cases, self.ours(cases, start, gradients)):
            with self.subTest(case, left_out=left_out, dtype=dtype):
                peer = by_the_peer(CASES[case][1], start, gradients, LR, left_out)
                self.assertEqual(set(peer), set(ours))
                for name, value in peer.items():
                    before = start[name.removeprefix("evaluated/")]
                    self.assertEqual(dtype, ours[name].dtype)
                    self.assertGreater((value - before).norm() / before.norm(), 1e-4)
                    error = (ours[name] - value).norm() / value.norm()
                    self.assertLess(error.item(), least, name)

    def test_twenty_steps(self):
        self.check(list(itertools.product(CASES, ((), LEFT_OUT))), torch.float, 1e-5)

    def test_twenty_steps_in_fp64(self):
        # Muon's iteration is in bf16 by its definition, and codes of 8 bits are of fp32.
        exact = [case for case, (keys, _) in CASES.items()
                 if not case.startswith("muon") and keys.get("min_8bit_size") != 0]
        self.check([(case, ()) for case in exact], torch.double, 1e-12)

    def test_adafactor_in_fp64_has_the_epsilon_of_fp64(self):
        # The mean squares are below those of fp32's epsilon, 1.4e-14, and above those of fp64's.
        self.check([("adafactor", ()), ("adafactor keys", ())], torch.double, 1e-12, gradient_scale=1e-9)

    def test_every_row_is_compared(self):
        rows = re.findall(r"^SCALETRAIN_OPTIMIZER\((\w+)", ROWS.read_text(), re.MULTILINE)
        self.assertEqual(set(rows), {case.split()[0] for case in CASES})


if __name__ == "__main__":
    unittest.main()
