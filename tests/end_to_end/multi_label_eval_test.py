"""scaletrain eval of a run whose images have any number of classes: its measures are those of the
training, on any number of ranks; every sample's probabilities are written; what is for one class an
image is refused."""

import csv
import json
import pathlib
import subprocess
import sys
import tarfile
import unittest

import numpy
import sklearn.metrics

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
        tables = []
        for split, several in (("val", (2,)), ("test", (1, 2, 3))):
            for ranks in several:
                file = self.folder / f"{split}-{ranks}.csv"
                done = self.run_scaletrain("eval", run, "--on", split, "--nproc", ranks, "--json",
                                           "--predictions", file)
                with file.open(newline="") as text:
                    tables.append(list(csv.reader(text)))
                found = json.loads(done.stdout)
                self.assertEqual(trained[split]["count"], found["count"])
                self.assertEqual({"map", "micro_f1", "macro_f1", "loss"}, set(found["measures"]))
                for name, value in found["measures"].items():
                    self.assertAlmostEqual(trained[split][name], value, places=6, msg=name)
        text = self.run_scaletrain("eval", run, "--nproc", 2).stdout
        self.assertIn("mean average precision", text)
        self.look_at_predictions(tables[1:], trained["test"])
        for ranks in (1, 2):
            done = self.run_scaletrain("eval", run, "--html", self.folder / "out", "--nproc", ranks,
                                       expect=2)
            self.assertEqual(1, done.stderr.count("--html: is for images of one class each"))
            self.assertFalse((self.folder / "out").exists())
            done = self.run_scaletrain("predict", run, self.folder / "multi/test-000000.tar",
                                       "--nproc", ranks, expect=2)
            self.assertEqual(1, done.stderr.count("is of the task multi_label_classification"))

    def look_at_predictions(self, tables, measured):
        """Looks at the tables of the test set, each of which another number of ranks wrote."""
        head, *rows = tables[0]
        names = [name.removeprefix("probability_") for name in head[3:]]
        self.assertEqual(json.loads((self.folder / "multi/classes.json").read_text()), names)
        self.assertEqual(["key", "labels", "predicted"], head[:3])
        with tarfile.open(self.folder / "multi/test-000000.tar") as tar:
            labels = {pathlib.Path(member.name).stem: json.load(tar.extractfile(member))
                      for member in tar if member.name.endswith(".cls")}
        self.assertEqual([[key, [names[label] for label in own]] for key, own in labels.items()],
                         [[row[0], json.loads(row[1])] for row in rows])
        shares = numpy.array([[float(cell) for cell in row[3:]] for row in rows])
        there = numpy.array([[name in json.loads(row[1]) for name in names] for row in rows])
        self.assertEqual([[name for name, share in zip(names, row) if share > 0.5]
                          for row in shares], [json.loads(row[2]) for row in rows])
        # The measures follow from the file: the mean of the classes that the set has.
        found = [sklearn.metrics.average_precision_score(there[:, i], shares[:, i])
                 for i in range(CLASSES) if there[:, i].any()]
        self.assertAlmostEqual(measured["map"], numpy.mean(found), places=5)
        self.assertAlmostEqual(measured["micro_f1"],
                               sklearn.metrics.f1_score(there, shares > 0.5, average="micro"),
                               places=5)
        for other in tables[1:]:
            self.assertEqual([row[:3] for row in tables[0]], [row[:3] for row in other])
            self.assertLess(abs(shares - numpy.array([row[3:] for row in other[1:]], float)).max(),
                            1e-6)


if __name__ == "__main__":
    unittest.main()
