"""A run killed with SIGKILL and resumed, again and again, ends as the run that was left alone."""

import json
import unittest

from end_to_end import killed_runs, support

# Running statistics in buffers; random masks and two moments for every parameter.
RESNET = {
    "model": {"name": "resnet18", "num_classes": 10},
    "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 1e-4},
    "validate": {"every": {"steps": 10}},
}
TRANSFORMER = {
    "model": {"name": "vit_tiny", "num_classes": 10, "dim": 48, "depth": 2, "dropout": 0.1},
    "optimizer": {"name": "adamw", "lr": 0.002},
    "validate": {"every": {"steps": 20}},
}
# A loss scale that grows, and falls again with the steps that it costs.
HALF = {
    "model": {"name": "vit_tiny", "num_classes": 10, "dim": 24, "depth": 1, "dropout": 0.1},
    "optimizer": {"name": "adamw", "lr": 0.002},
    "precision": {"name": "fp16", "init_scale": 1e7, "growth_interval": 3},
    "ema": {"decay": 0.9},
    "validate": {"every": {"steps": 10}},
}


class ResumeTest(killed_runs.KilledRunTestCase):
    def test_two_ranks_of_a_convolutional_network(self):
        if support.LONG:
            self.check_killed_run(2, 60, RESNET)
        else:
            self.check_killed_run(2, 16, RESNET, ["rank", "all while saving"])

    def test_four_ranks_of_a_transformer(self):
        if support.LONG:
            self.check_killed_run(4, 60, TRANSFORMER)
        else:
            self.check_killed_run(4, 40, TRANSFORMER, ["launcher", "launcher while saving", "all"])

    def test_two_ranks_in_fp16_with_a_loss_scale(self):
        self.check_killed_run(2, 24, HALF, ["rank", "all", "all while saving"])
        scales = {json.loads((path / "state.json").read_text())["scaler"]["scale"]
                  for path in (self.folder / "killed/checkpoints").glob("step-????????")}
        self.assertNotEqual({1e7}, scales)

    @unittest.skipUnless(support.LONG, "four ranks of a ResNet: the long form")
    def test_four_ranks_of_a_convolutional_network(self):
        self.check_killed_run(4, 60, RESNET)


if __name__ == "__main__":
    unittest.main()
