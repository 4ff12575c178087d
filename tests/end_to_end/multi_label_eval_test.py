"""scaletrain eval of a run whose images have any number of classes: its measures are those of the
training, on any number of ranks; what is for one class an image is refused."""

import json
import subprocess
import sys
import unittest

from end_to_end import support

CLASSES = 13


class MultiLabelEvalTest(support.RunTestCase):
    def train(self):
        shards = self.folder / "multi"
        subprocess.run([sys.executable, support.ROOT / "scripts" / "make_digits.py",
                        "--multi-label", shards], check=True, stdout=subprocess.DEVNULL)
        data = {"train": {"shards": str(shards / "train-{000000..000003}.tar")},
                "val": {"shards": str(shards / "val-000000.tar")},
                "test": {"shards": str(shards / "test-000000.tar")}, "image_size": 16}
        recipe = self.recipe("run", task="multi_label_classification", data=data, steps=40,
                             model={"name": "mlp", "num_classes": CLASSES, "hidden": 32},
                             loss={"name": "binary_cross_entropy"},
                             checkpoint={"keep_best": 0})
        self.run_scaletrain("launch", "--nproc", 2, recipe)
        return self.folder / "run"

    def test_measures_are_those_of_the_training_on_any_number_of_ranks(self):
        run = self.train()
        trained = {record["split"]: record for record in support.records(run, "eval")}
        for split in ("val", "test"):
            for ranks in (1, 2, 3):
                done = self.run_scaletrain("eval", run, "--on", split, "--nproc", ranks, "--json")
                found = json.loads(done.stdout)
                self.assertEqual(trained[split]["count"], found["count"])
                self.assertEqual({"map", "micro_f1", "macro_f1", "loss"}, set(found["measures"]))
                for name, value in found["measures"].items():
                    self.assertAlmostEqual(trained[split][name], value, places=6, msg=name)
        text = self.run_scaletrain("eval", run, "--nproc", 2).stdout
        self.assertIn("mean average precision", text)
        for flag in ("--predictions", "--html"):
            done = self.run_scaletrain("eval", run, flag, self.folder / "out", expect=2)
            self.assertIn(f"{flag}: is for classifiers of images", done.stderr)
            self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()
