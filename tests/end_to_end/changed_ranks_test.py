"""A run that goes on with another number of ranks in mid-epoch, again and again, trains on the same
samples in the same order, and loses nothing."""

import unittest

import torch

from end_to_end import support

STEPS = 20
FAULTS = ((2, "kill@7,1"), (4, "kill@12,3"), (1, "kill@17,0"), (3, None))


class NormedTwice(torch.nn.Module):
    """Two layers with BatchNorm, whose statistics are those of a micro-batch."""

    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
            torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.BatchNorm2d(16), torch.nn.ReLU())
        self.head = torch.nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.features(x).mean([2, 3]))


class ChangedRanksTest(support.RunTestCase):
    def write(self, name, writers):
        return self.recipe(
            name, steps=STEPS, batch={"global": 48, "per_device": 4}, threads=1,
            model={"name": "vit_tiny", "num_classes": 10, "depth": 12 if support.LONG else 2},
            optimizer={"name": "adamw", "lr": 1e-4}, ema={"decay": 0.9},
            checkpoint={"every": {"steps": 2}, "writers": writers})

    def test_from_2_to_4_to_1_to_3_ranks(self):
        self.run_scaletrain("launch", "--nproc", 2, self.write("alone", "rank_0"))
        alone = support.records(self.folder / "alone", "train")
        for writers in ("all", "rank_0") if support.LONG else ("all",):
            run = self.folder / writers
            self.change_ranks(self.write(writers, writers))
            self.check(run, alone)
            evals = [[record["top1"] for record in support.records(folder, "eval")
                      if record["split"] == "test"] for folder in (self.folder / "alone", run)]
            self.assertAlmostEqual(evals[0][0], evals[1][0], delta=0.01)

    def test_batch_norm_from_2_to_4_to_1_to_3_ranks(self):
        """In fp32: a rounding that differs in a sum over ranks grows from step to step in a deep
        network with BatchNorm (docs/internals/reliability.md), in this one it stays small."""
        torch.manual_seed(3)
        torch.jit.script(NormedTwice()).save(self.folder / "model.pt")

        def write(name):
            return self.recipe(
                name, steps=STEPS, batch={"global": 96, "per_device": 8}, threads=1,
                model={"name": "torchscript", "num_classes": 10,
                       "file": str(self.folder / "model.pt")},
                optimizer={"name": "sgd", "lr": 0.01, "momentum": 0.9},
                checkpoint={"every": {"steps": 2}})
        self.run_scaletrain("launch", "--nproc", 2, write("alone"))
        self.change_ranks(write("run"))
        alone = support.records(self.folder / "alone", "train")
        self.check(self.folder / "run", alone)
        self.assertLess(alone[-1]["loss"], 0.99 * alone[0]["loss"], "nothing was learned")

    @unittest.skipUnless(support.LONG, "a ResNet in fp64: the long form")
    def test_resnet_in_fp64_from_2_to_4_to_1_to_3_ranks(self):
        """A deep network with BatchNorm. With micro-batches of 4 it multiplies each rounding a hundredfold
        a step, in fp64 too; these of 8 keep it small."""
        def write(name):
            return self.recipe(
                name, steps=STEPS, batch={"global": 96, "per_device": 8}, threads=1,
                precision="fp64", model={"name": "resnet18", "num_classes": 10},
                optimizer={"name": "sgd", "lr": 1e-3, "momentum": 0.9}, ema={"decay": 0.9},
                checkpoint={"every": {"steps": 2}})
        self.run_scaletrain("launch", "--nproc", 2, write("alone"))
        self.change_ranks(write("run"))
        alone = support.records(self.folder / "alone", "train")
        self.check(self.folder / "run", alone)

    def change_ranks(self, path):
        for ranks, fault in FAULTS:
            self.run_scaletrain("launch", "--nproc", ranks, "--resume", "auto", path,
                                expect=137 if fault else 0,
                                env={"SCALETRAIN_FAULT": fault} if fault else None)

    def check(self, run, alone):
        lines = support.records(run, "train")
        self.assertEqual({0, 1, 2, 3}, {line["attempt"] for line in lines})
        self.assertEqual([line["order_digest"] for line in alone],
                         [line["order_digest"] for line in lines])
        for one, other in zip(alone, lines):
            self.assertLess(abs(one["loss"] - other["loss"]), 1e-5 * abs(one["loss"]),
                            f"step {one['step']}")


if __name__ == "__main__":
    unittest.main()
