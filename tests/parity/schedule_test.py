"""Every schedule equals PyTorch's SequentialLR of the matching schedulers, its own or Transformers',
at every step."""

import itertools
import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from torch.optim import lr_scheduler as lr
from torch.optim.swa_utils import SWALR
from transformers import get_inverse_sqrt_schedule, get_wsd_schedule

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "schedule_program")
PEAK = 0.4
TOTAL = 60
STEPS_PER_EPOCH = 10

# decay of the recipe -> PyTorch's scheduler for the steps after the warmup
CASES = {
    "constant": ({"name": "constant"}, lambda o, steps: lr.ConstantLR(o, factor=1.0)),
    "cosine": (
        {"name": "cosine"},
        lambda o, steps: lr.CosineAnnealingLR(o, T_max=steps),
    ),
    "cosine to a tenth": (
        {"name": "cosine", "final_factor": 0.1},
        lambda o, steps: lr.CosineAnnealingLR(o, T_max=steps, eta_min=0.1 * PEAK),
    ),
    "step": (
        {"name": "step", "every_epochs": 1.5, "gamma": 0.3},
        lambda o, steps: lr.StepLR(o, step_size=15, gamma=0.3),
    ),
    "multi_step": (
        {"name": "multi_step", "milestones": [1.5, 3, 5], "gamma": 0.3},
        # Its milestones count from the beginning of training.
        lambda o, steps: lr.MultiStepLR(o, [at - (TOTAL - steps) for at in (15, 30, 50)], gamma=0.3),
    ),
    "polynomial": (
        {"name": "polynomial", "power": 2.0},
        lambda o, steps: lr.PolynomialLR(o, total_iters=steps, power=2.0),
    ),
    "cosines": (
        {"name": "cosine_restarts", "cycle_epochs": 1.2, "final_factor": 0.1},
        lambda o, steps: lr.CosineAnnealingWarmRestarts(o, T_0=12, eta_min=0.1 * PEAK),
    ),
    "longer and longer cosines": (
        {"name": "cosine_restarts", "cycle_epochs": 0.5, "cycle_factor": 2.0},
        lambda o, steps: lr.CosineAnnealingWarmRestarts(o, T_0=5, T_mult=2),
    ),
    "linear": (
        {"name": "linear", "final_factor": 0.25},
        lambda o, steps: lr.LinearLR(o, start_factor=1.0, end_factor=0.25, total_iters=steps),
    ),
    "exponential": (
        {"name": "exponential", "gamma": 0.9 ** STEPS_PER_EPOCH},
        lambda o, steps: lr.ExponentialLR(o, gamma=0.9),
    ),
    "inverse_sqrt": (
        {"name": "inverse_sqrt", "timescale": 7},
        lambda o, steps: get_inverse_sqrt_schedule(o, num_warmup_steps=0, timescale=7),
    ),
    "warmup_stable_decay": (
        {"name": "warmup_stable_decay", "decay_share": 0.4, "final_factor": 0.1},
        lambda o, steps: get_wsd_schedule(o, 0, 24, num_training_steps=steps, decay_type="linear",
                                          min_lr_ratio=0.1),
    ),
    "warmup_stable_decay, cosine": (
        {"name": "warmup_stable_decay", "decay_share": 0.2, "shape": "cosine"},
        lambda o, steps: get_wsd_schedule(o, 0, 12, num_training_steps=steps),
    ),
    "warmup_stable_decay, 1-sqrt": (
        {"name": "warmup_stable_decay", "decay_share": 0.3, "shape": "1-sqrt"},
        lambda o, steps: get_wsd_schedule(o, 0, 18, num_training_steps=steps, decay_type="1-sqrt"),
    ),
    "one_cycle": (
        {"name": "one_cycle"},
        lambda o, steps: lr.OneCycleLR(o, PEAK, total_steps=steps),
    ),
    "one_cycle, flat": (
        {"name": "one_cycle", "rise_share": 0.5, "div_factor": 4.0, "final_div_factor": 2.0},
        lambda o, steps: lr.OneCycleLR(o, PEAK, total_steps=steps, pct_start=0.5, div_factor=4.0,
                                       final_div_factor=2.0),
    ),
    "line": (
        {"name": "polynomial", "power": 1.0},
        lambda o, steps: lr.PolynomialLR(o, total_iters=steps, power=1.0),
    ),
}


def ours(*cases):
    """The rates of each (decay, warmup, other keys of the recipe), by one run of the program."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for decay, warmup, keys in cases:
            schedule = {"decay": decay, **({"warmup": {"steps": warmup}} if warmup else {})}
            paths.append(pathlib.Path(folder, f"{len(paths)}.json"))
            paths[-1].write_text(json.dumps({
                "name": "schedules",
                "model": {"name": "mlp", "num_classes": 10},
                "data": {"train": {"shards": "train.tar"}, "image_size": 32},
                "steps": TOTAL,
                "optimizer": {"name": "sgd", "lr": PEAK},
                "schedule": schedule,
                **keys,
            }))
        done = subprocess.run([PROGRAM, str(TOTAL), str(STEPS_PER_EPOCH), *paths], cwd=folder,
                              capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise AssertionError(done.stderr)
    rates = []
    for text in done.stdout.removesuffix("\n\n").split("\n\n"):
        rows = [[float(word) for word in line.split()] for line in text.splitlines()]
        rates.append([row[0] if len(row) == 1 else row for row in rows])
    return rates


def pytorch(make, warmup):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
    main = make(optimizer, TOTAL - warmup)
    scheduler = main
    if warmup:
        rise = lr.LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
        scheduler = lr.SequentialLR(optimizer, [rise, main], milestones=[warmup])
    rates = []
    for _ in range(TOTAL):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


class ScheduleTest(unittest.TestCase):
    def test_every_schedule_at_every_step(self):
        cases = [(name, warmup) for name in CASES
                 for warmup in ((0,) if "one_cycle" in name else (0, 1, 8))]
        rates = ours(*((CASES[name][0], warmup, {}) for name, warmup in cases))
        for (name, warmup), mine in zip(cases, rates, strict=True):
            with self.subTest(schedule=name, warmup=warmup):
                self.assertEqual(len(mine), TOTAL)
                for step, (a, b) in enumerate(zip(mine, pytorch(CASES[name][1], warmup))):
                    # PyTorch multiplies from step to step and collects rounding errors.
                    self.assertTrue(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-15),
                                    f"step {step}: {a} against {b}")

    def test_the_rate_while_weights_are_averaged_is_pytorchs(self):
        start = 20
        cases = list(itertools.product((0, 1, 15), ("cos", "linear")))
        rates = ours(*(({"name": "cosine"}, 0, {"swa": {
            "start": {"steps": start}, "lr": 0.05, "anneal": {"steps": anneal},
            "anneal_strategy": strategy}}) for anneal, strategy in cases))
        for (anneal, strategy), mine in zip(cases, rates, strict=True):
            with self.subTest(anneal=anneal, strategy=strategy):
                optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=PEAK)
                scheduler = lr.CosineAnnealingLR(optimizer, T_max=TOTAL)
                theirs = []
                for step in range(TOTAL):
                    if step == start:
                        averaging = SWALR(optimizer, swa_lr=0.05, anneal_epochs=anneal,
                                          anneal_strategy=strategy)
                    if step >= start and (anneal == 0 or step > start):
                        averaging.step()
                    theirs.append(optimizer.param_groups[0]["lr"])
                    optimizer.step()
                    if step < start:
                        scheduler.step()
                for step, (a, b) in enumerate(zip(mine, theirs)):
                    self.assertTrue(math.isclose(a, b, rel_tol=1e-9), f"{step}: {a} against {b}")

    def test_the_weight_decay_is_dinos_cosine_scheduler(self):
        mine, = ours(({"name": "constant"}, 0, {"optimizer": {
            "name": "adamw", "lr": PEAK, "weight_decay": 0.04, "weight_decay_end": 0.4}}))
        # main_dino.py: cosine_scheduler(weight_decay, weight_decay_end, epochs, steps per epoch)
        steps = np.arange(TOTAL)
        dino = 0.4 + 0.5 * (0.04 - 0.4) * (1 + np.cos(np.pi * steps / len(steps)))
        for (_, decay), expected in zip(mine, dino):
            self.assertTrue(math.isclose(decay, expected, rel_tol=1e-12))


if __name__ == "__main__":
    unittest.main()
