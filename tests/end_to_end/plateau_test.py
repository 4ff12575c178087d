"""A learning rate that falls where the validations get no better: PyTorch's, also after a resume."""

import json
import unittest

import torch

from end_to_end import support

LR = 1e-4
KEYS = {"metric": "loss", "factor": 0.5, "patience": 1, "threshold": 0.02, "cooldown": 1}


class PlateauTest(support.RunTestCase):
    def test_the_learning_rate_is_that_of_reduce_lr_on_plateau(self):
        recipe = self.recipe(steps=40, optimizer={"name": "sgd", "lr": LR},
                             schedule={"plateau": KEYS}, validate={"every": {"steps": 2}},
                             checkpoint={"every": {"steps": 7}, "async": False})
        run = self.folder / "recipe"
        self.run_scaletrain("launch", recipe, env={"SCALETRAIN_FAULT": "kill@24"}, expect=137)
        self.run_scaletrain("resume", run)
        rates = {r["step"]: r["lr"] for r in support.records(run, "train")}
        losses = {r["step"]: r["loss"] for r in support.records(run, "eval") if r["split"] == "val"}

        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=LR)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=0.5, patience=1, threshold=0.02, cooldown=1)
        for step in range(1, 41):
            self.assertAlmostEqual(optimizer.param_groups[0]["lr"], rates[step], delta=1e-12)
            if step in losses:
                scheduler.step(losses[step])
        self.assertLess(rates[40], LR / 3)  # it fell more than once
        state = json.loads((run / "checkpoints/latest/state.json").read_text())
        self.assertEqual("loss", state["plateau_by"])


if __name__ == "__main__":
    unittest.main()
