"""A run goes on with a training set that was changed: told what, or told that it cannot."""

import shutil
import unittest

from end_to_end import support
from end_to_end.data_order_test import write_shards

EVERY_FOUR = {"checkpoint": {"every": {"steps": 4}, "async": False}}
BATCH = {"global": 32, "per_device": 8}


class ChangedSetTest(support.RunTestCase):
    def launch(self, data, ranks=1, expect=0, resume=False, fault=None, name="run", **changes):
        path = self.recipe(name, data={"image_size": 16, **data}, batch=BATCH, **EVERY_FOUR,
                           **changes)
        return self.run_scaletrain("launch", "--nproc", ranks,
                                   *(["--resume", "auto"] if resume else []), path, expect=expect,
                                   env={"SCALETRAIN_FAULT": fault} if fault else None).stderr

    def check_another_size(self, sizes, steps_per_epoch, end, validations):
        """Four epochs of 5 steps, of which the third goes on at its third step."""
        shards = write_shards(self.folder / "set", "train", [80, 80])
        data = {"train": {"shards": shards}, "val": {"shards": str(support.DIGITS / "val-000000.tar")}}
        changes = {"steps": None, "epochs": 4, "schedule": {"decay": "cosine"}}
        self.launch(data, fault="kill@14", expect=137, **changes)
        write_shards(self.folder / "set", "train", sizes)
        err = self.launch(data, resume=True, **changes)
        self.assertIn(f"warning: an epoch has {steps_per_epoch} steps from here on, had 5: the run "
                      f"goes on at step 3 of epoch 3 and ends after step {end}\n", err)
        train = support.records(self.folder / "run", "train")
        self.assertEqual((end, 3), (train[-1]["step"], train[-1]["epoch"]))
        self.assertEqual(validations,
                         [r["step"] for r in support.records(self.folder / "run", "eval")
                          if r["split"] == "val"])
        # The learning rate goes on falling, and ends as in a run that always had this set.
        rates = [r["lr"] for r in train]
        self.assertEqual(sorted(rates, reverse=True), rates)
        self.launch(data, name="alone", **changes)
        alone = support.records(self.folder / "alone", "train")
        self.assertEqual(4 * steps_per_epoch, len(alone))
        left = end - 12
        self.assertEqual([r["lr"] for r in alone[-left:]], rates[-left:])

    def test_a_larger_set_ends_with_the_last_epoch(self):
        self.check_another_size([96, 96], 6, 12 + 4 + 6, [5, 10, 16, 22])

    def test_a_smaller_set_ends_with_the_last_epoch(self):
        self.check_another_size([64, 64], 4, 12 + 2 + 4, [5, 10, 14, 18])

    SIZES = [90, 10, 55, 1, 120, 24]

    def start_streamed(self, ranks):
        shards = write_shards(self.folder / "set", "train", self.SIZES)
        self.data = {"train": {"shards": shards}, "order": "streamed", "lanes": 8}
        self.launch(self.data, ranks, fault="kill@14", expect=137, steps=24)

    def replace(self, shard, size):
        """Other samples under the name of one of the shards."""
        other, = write_shards(self.folder / "other", "val", [size])
        shutil.move(other, self.folder / f"set/train-{shard:03}.tar")

    def test_a_shard_of_the_streamed_order_with_other_samples_is_told(self):
        self.start_streamed(2)
        self.assertNotIn("not bit for bit", self.launch(self.data, 2, resume=True,
                                                        fault="kill@18", expect=137, steps=24))
        self.replace(4, 120)  # of lane 4, which rank 0 reads
        self.replace(5, 24)  # of lane 5, which rank 1 reads
        err = self.launch(self.data, 2, resume=True, steps=24)
        start = "warning: the resumed run is not bit for bit equal: "
        self.assertIn(f"{start}{self.folder}/set/train-004.tar holds other samples\n", err)
        self.assertIn(f"{start}1 shard that other ranks read holds other samples", err)
        log = self.folder / "run/logs/attempt_2/1/stderr.log"
        self.assertIn(f"{start}{self.folder}/set/train-005.tar holds other samples\n",
                      log.read_text())

    def test_a_shard_of_the_streamed_order_with_another_number_of_samples_is_65(self):
        self.start_streamed(1)
        self.replace(4, 119)
        err = self.launch(self.data, resume=True, expect=65, steps=24)
        self.assertIn(f"{self.folder}/set/train-004.tar: has 119 samples, and had 120 before the "
                      "run was resumed\n", err)


if __name__ == "__main__":
    unittest.main()
