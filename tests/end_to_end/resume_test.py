"""A run killed with SIGKILL and resumed, again and again, ends as the run that was left alone."""

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


class ResumeTest(killed_runs.KilledRunTestCase):
    def test_two_ranks_of_a_convolutional_network(self):
        if support.LONG:
            self.check_killed_run(2, 60, RESNET)
        else:
            self.check_killed_run(2, 16, RESNET, ["rank", "all while saving"])

    def test_four_ranks_of_a_transformer(self):
        self.check_killed_run(4, 60, TRANSFORMER)

    @unittest.skipUnless(support.LONG, "four ranks of a ResNet: the long form")
    def test_four_ranks_of_a_convolutional_network(self):
        self.check_killed_run(4, 60, RESNET)


if __name__ == "__main__":
    unittest.main()
