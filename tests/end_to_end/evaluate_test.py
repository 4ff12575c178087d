"""scaletrain eval and predict on a small classifier: its numbers are those of training, of
scikit-learn and of PyTorch, on any number of ranks; what cannot be read is named."""

import csv
import html.parser
import io
import json
import pathlib
import tarfile
import tempfile
import unittest

import numpy
import sklearn.metrics
import torch

from end_to_end import support

TEST = support.DIGITS / "test-000000.tar"
CLASSES = 10


class Page(html.parser.HTMLParser):
    """What a page of HTML shows."""

    def __init__(self, text):
        super().__init__()
        self.images, self.cells, self.remote = [], 0, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.remote += [value for value in values.values() if value and "://" in value]
        if tag == "img":
            self.images.append(values["src"])
        self.cells += tag == "td"


class EvaluateTest(support.RunTestCase):
    """One run and one evaluation of its test set, which all tests look at."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        case = cls("evaluate")
        case.folder = cls.home
        data = {
            "train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
            "val": {"shards": str(support.DIGITS / "val-000000.tar")},
            "test": {"shards": str(TEST)},
            "extra": {"few": {"shards": str(TEST), "limit": 50},
                      "again": {"shards": str(TEST)}},
            "image_size": 16, "index_cache": str(cls.home / "index")}
        case.run_scaletrain("launch", case.recipe("run", data=data, steps=60,
                                                  validate={"every": {"steps": 30}},
                                                  checkpoint={"keep_best": 0}))
        cls.run_folder = cls.home / "run"
        cls.tested, cls.table = case.evaluate_test()
        case.doCleanups()
        cls.records = support.records(cls.run_folder, "eval")

    def evaluate(self, *flags):
        done = self.run_scaletrain("eval", self.run_folder, "--json", *flags)
        return json.loads(done.stdout)

    def evaluate_test(self, ranks=1):
        """The measures of the test set, and the rows of the predictions."""
        path = self.home / f"ranks-{ranks}.csv"
        found = self.evaluate("--on", "test", "--nproc", ranks, "--predictions", path)
        with path.open(newline="") as file:
            return found, list(csv.DictReader(file))

    def predict(self, *words, expect=0):
        done = self.run_scaletrain("predict", self.run_folder, *words, expect=expect)
        return done.stdout, done.stderr

    def last(self, split):
        return [record for record in self.records if record["split"] == split][-1]

    def test_measures_are_those_of_the_training(self):
        for found, split in ((self.evaluate("--on", "val"), "val"), (self.tested, "test"),
                             (self.evaluate("--on", "few"), "extra/few")):
            expected = self.last(split)
            self.assertEqual(split, found["set"])
            self.assertEqual(expected["step"], found["step"])
            self.assertEqual(expected["count"], found["count"])
            for measure, value in found["measures"].items():
                self.assertEqual(expected[measure], value, measure)
        self.assertEqual(50, self.last("extra/few")["count"])
        # The same set under another name, with each validation.
        self.assertEqual([30, 60], [r["step"] for r in self.records if r["split"] == "extra/again"])
        self.assertEqual(self.last("test")["loss"], self.last("extra/again")["loss"])

    def test_reports_equal_scikit_learn_and_pytorch(self):
        found, rows = self.tested, self.table
        self.assertEqual(197, len(rows))
        names = [one["name"] for one in found["classes"]]
        labels = numpy.array([names.index(row["label"]) for row in rows])
        predicted = numpy.array([names.index(row["predicted"]) for row in rows])

        confusion = numpy.zeros((CLASSES, CLASSES), int)
        for label, other, count in found["confusion"]:
            confusion[label, other] = count
        expected = sklearn.metrics.confusion_matrix(labels, predicted, labels=range(CLASSES))
        self.assertTrue((expected == confusion).all())
        self.assertEqual(expected.sum(1).tolist(), [one["count"] for one in found["classes"]])
        self.assertEqual(expected.diagonal().tolist(), [one["right"] for one in found["classes"]])
        recalls = sklearn.metrics.recall_score(labels, predicted, average=None)
        for recall, one in zip(recalls, found["classes"]):
            self.assertAlmostEqual(recall, one["accuracy"], places=12)
        self.assertGreater((labels != predicted).sum(), 5, "the model is too good for this test")

        shares = self.all_shares([row["key"] for row in rows])
        self.assertAlmostEqual(sklearn.metrics.log_loss(labels, shares), found["measures"]["loss"],
                               places=5)
        calibration = found["calibration"]
        self.assertAlmostEqual(self.error(shares, labels), calibration["error"], places=6)
        temperature, loss = self.temperature(shares, labels)
        self.assertAlmostEqual(temperature, calibration["temperature"], delta=1e-4 * temperature)
        self.assertAlmostEqual(loss, calibration["loss_with_temperature"], places=6)
        self.assertLess(loss, found["measures"]["loss"])
        mended = torch.tensor(shares).log().div(calibration["temperature"]).softmax(1).numpy()
        self.assertAlmostEqual(self.error(mended, labels), calibration["error_with_temperature"],
                               places=6)

    def all_shares(self, keys):
        """Probabilities of all classes from predict, in the order of `keys`."""
        out, _ = self.predict(TEST, "--top", CLASSES, "--json")
        rows = {}
        for line in out.splitlines():
            record = json.loads(line)
            shares = sorted((one["class"], one["probability"]) for one in record["predictions"])
            self.assertEqual(list(range(CLASSES)), [number for number, _ in shares])
            rows[record["image"]] = [share for _, share in shares]
        self.assertEqual(keys, list(rows))
        shares = numpy.array([rows[key] for key in keys])
        return shares / shares.sum(1, keepdims=True)

    @staticmethod
    def error(shares, labels, bins=15):
        """Expected calibration error as Guo et al., 2017, have it."""
        confidence, right = shares.max(1), shares.argmax(1) == labels
        edges, error = numpy.linspace(0, 1, bins + 1), 0.0
        for low, high in zip(edges[:-1], edges[1:]):
            inside = (confidence > low) & (confidence <= high)
            if inside.any():
                error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
        return error

    @staticmethod
    def temperature(shares, labels):
        """The temperature with the least loss, and that loss, by L-BFGS."""
        logits, labels = torch.tensor(shares).log(), torch.tensor(labels)
        temperature = torch.ones((), dtype=torch.float64, requires_grad=True)
        search = torch.optim.LBFGS([temperature], max_iter=200, tolerance_grad=1e-12,
                                   tolerance_change=1e-14, line_search_fn="strong_wolfe")

        def loss():
            search.zero_grad()
            value = torch.nn.functional.cross_entropy(logits / temperature, labels)
            value.backward()
            return value

        search.step(loss)
        return temperature.item(), loss().item()

    def test_every_sample_once_on_any_number_of_ranks(self):
        def shown(table):
            return [[row["key"], row["label"], row["predicted"]] for row in table]

        one = self.tested
        for ranks in (2, 4):
            found, table = self.evaluate_test(ranks)
            self.assertEqual(shown(self.table), shown(table))
            self.assertEqual(197, found["count"])
            self.assertEqual(one["confusion"], found["confusion"])
            for measure, value in one["measures"].items():
                self.assertAlmostEqual(value, found["measures"][measure], places=6)
            for name, value in one["calibration"].items():
                self.assertAlmostEqual(value, found["calibration"][name], places=5)

    def test_predict_gives_what_eval_gave_bit_for_bit(self):
        expected = [list(row.values()) for row in self.table]
        folder = self.home / "images"
        with tarfile.open(TEST) as tar:
            members = [member for member in tar if member.name.endswith(".png")]
            tar.extractall(folder, members=members)
        self.assertEqual(197, len(members))
        out, _ = self.predict(*(folder / member.name for member in members), "--csv")
        found = list(csv.reader(io.StringIO(out)))
        self.assertEqual(["image", "label", "probability", "label_2", "probability_2"],
                         found[0][:5])
        many, _ = self.predict(*(folder / member.name for member in members), "--csv", "--nproc", 3)
        self.assertEqual([row[:2] for row in found],
                         [row[:2] for row in csv.reader(io.StringIO(many))])
        for row, other in zip(expected, found[1:], strict=True):
            self.assertEqual(f"{row[0]}.png", pathlib.Path(other[0]).name)
            self.assertEqual(row[2:], other[1:])
        # A folder is the images in it, sorted, however deep.
        deep, _ = self.predict(folder.parent / "images", "--csv", "--top", 1)
        images = [row[0] for row in csv.reader(io.StringIO(deep))][1:]
        self.assertEqual(sorted(row[0] for row in found[1:]), images)

    def test_an_image_that_cannot_be_read_is_named_and_the_others_go_on(self):
        with tarfile.open(TEST) as tar:
            member = next(member for member in tar if member.name.endswith(".png"))
            picture = tar.extractfile(member).read()
        (self.folder / "good.png").write_bytes(picture)
        (self.folder / "cut.png").write_bytes(picture[:40])
        out, err = self.predict(self.folder / "cut.png", self.folder / "good.png",
                                self.folder / "none.png", expect=65)
        self.assertEqual(1, len(out.splitlines()))
        self.assertTrue(out.startswith(str(self.folder / "good.png")))
        self.assertIn("cut.png: the image does not decode", err)
        self.assertIn("none.png: No such file or directory (ENOENT)", err)
        self.assertIn("predict: 2 of 3 images cannot be read", err)

    def test_the_page_stands_alone(self):
        page = self.home / "page.html"
        text = self.run_scaletrain("eval", self.run_folder, "--on", "test", "--html", page).stdout
        self.assertIn("197 samples", text)
        self.assertIn("calibration error", text)
        shown = Page(page.read_text())
        wrong = sum(count for label, other, count in self.tested["confusion"] if label != other)
        self.assertEqual(min(wrong, 64), len(shown.images))
        self.assertTrue(all(image.startswith("data:image/png;base64,") for image in shown.images))
        self.assertEqual(CLASSES * CLASSES, shown.cells)
        self.assertEqual([], shown.remote)

    def test_other_data_and_what_is_refused(self):
        found = self.evaluate("--data", TEST, "--batch", 50)
        self.assertEqual(self.last("test")["top1"], found["measures"]["top1"])
        self.assertAlmostEqual(self.last("test")["loss"], found["measures"]["loss"], places=5)
        for words, text in (
                (["--on", "none"],
                 '--on: "none" is no held-out set of the run\n'
                 "  use one of: val, test, extra/again, extra/few; or --data SHARDS"),
                (["--data", self.folder / "none.tar"], "none.tar")):
            done = self.run_scaletrain("eval", self.run_folder, *words,
                                       expect=2 if "--on" in words else 65)
            self.assertIn(text, done.stderr)
        for ranks in (1, 2):
            done = self.run_scaletrain("eval", self.folder, "--nproc", ranks, expect=65)
            self.assertIn("has no checkpoint", done.stderr)
            done = self.run_scaletrain("eval", self.run_folder, "--nproc", ranks, "--on", "none",
                                       expect=2)
            self.assertEqual(1, done.stderr.count("is no held-out set of the run"))


if __name__ == "__main__":
    unittest.main()
