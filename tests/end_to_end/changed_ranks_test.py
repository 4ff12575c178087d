"""A run that goes on with another number of ranks in mid-epoch, again and again, trains on the same
samples in the same order, and loses nothing."""

import unittest

from end_to_end import support

STEPS = 20


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
        for writers in ("rank_0", "all"):
            run = self.folder / writers
            path = self.write(writers, writers)
            for ranks, fault in ((2, "kill@7,1"), (4, "kill@12,3"), (1, "kill@17,0"), (3, None)):
                self.run_scaletrain("launch", "--nproc", ranks, "--resume", "auto", path,
                                    expect=137 if fault else 0,
                                    env={"SCALETRAIN_FAULT": fault} if fault else None)
            lines = support.records(run, "train")
            self.assertEqual({0, 1, 2, 3}, {line["attempt"] for line in lines})
            self.assertEqual([line["order_digest"] for line in alone],
                             [line["order_digest"] for line in lines])
            for one, other in zip(alone, lines):
                self.assertLess(abs(one["loss"] - other["loss"]), 1e-5 * abs(one["loss"]),
                                f"step {one['step']}")
            evals = [[record["top1"] for record in support.records(folder, "eval")
                      if record["split"] == "test"] for folder in (self.folder / "alone", run)]
            self.assertAlmostEqual(evals[0][0], evals[1][0], delta=0.01)


if __name__ == "__main__":
    unittest.main()
