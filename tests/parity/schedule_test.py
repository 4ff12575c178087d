"""Every schedule equals PyTorch's SequentialLR of the matching schedulers, its own or Transformers',
at every step."""

import json
import math
import os
import subprocess
import tempfile
import unittest

import torch
from torch.optim import lr_scheduler as lr
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


def ours(decay, warmup):
    schedule = {"decay": decay}
    if warmup:
        schedule["warmup"] = {"steps": warmup}
    recipe = {
        "name": "schedules",
        "model": {"name": "mlp", "num_classes": 10},
        "data": {"train": {"shards": "train.tar"}, "image_size": 32},
        "steps": TOTAL,
        "optimizer": {"name": "sgd", "lr": PEAK},
        "schedule": schedule,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "recipe.json")
        with open(path, "w") as file:
            json.dump(recipe, file)
        done = subprocess.run(
            [PROGRAM, path, str(TOTAL), str(STEPS_PER_EPOCH)],
            cwd=folder, capture_output=True, text=True, timeout=60,
        )
    if done.returncode:
        raise AssertionError(done.stderr)
    return [float(line) for line in done.stdout.split()]


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
        for name, (decay, make) in CASES.items():
            for warmup in (0,) if "one_cycle" in name else (0, 1, 8):
                with self.subTest(schedule=name, warmup=warmup):
                    mine, theirs = ours(decay, warmup), pytorch(make, warmup)
                    self.assertEqual(len(mine), TOTAL)
                    for step, (a, b) in enumerate(zip(mine, theirs)):
                        # PyTorch multiplies from step to step and collects rounding errors.
                        self.assertTrue(
                            math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-15),
                            f"step {step}: {a} against {b}",
                        )


if __name__ == "__main__":
    unittest.main()
