"""scaletrain lr-find: a learning rate range test of a recipe."""

import json
import signal
import unittest
import xml.etree.ElementTree

from launcher.launch_support import LaunchTestCase

RANGE = ["--from", "1e-5", "--to", "10", "--steps", "60"]


class LrFind(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.run_launcher("data", "synth", "set", "--samples", 48, "--classes", 3, "--size", 32)
        (self.folder / "recipe.json").write_text(json.dumps({
            "name": "shapes", "model": {"name": "mlp", "num_classes": 3},
            "data": {"train": {"shards": "set/train-*.tar"}, "val": {"shards": "set/train-*.tar"},
                     "image_size": 16},
            "batch": {"per_device": 8}, "epochs": 3,
            "optimizer": {"name": "adamw", "lr": 0.001, "lr_base_batch": 4},
            "schedule": {"warmup": {"epochs": 1}, "decay": "cosine"},
            "anomaly": {"policy": "stop", "window": 4, "spike": 0.1},
            "early_stopping": {"patience": 1}, "ema": {"decay": 0.9}, "output": "run"}))

    def lr_find(self, *flags, expect=0):
        return self.run_launcher("lr-find", "recipe.json", *flags, expect=expect)

    def assert_no_run_left(self):
        self.assertFalse((self.folder / "run").exists())
        self.assertEqual([], list(self.folder.glob("scaletrain-lr-find-*")))  # TMPDIR is here

    def test_the_rates_grow_exponentially_until_the_loss_diverges(self):
        found = json.loads(self.lr_find("--json", "--set", "optimizer.lr_base_batch=8", *RANGE).stdout)
        self.assertEqual("diverged", found["end"])
        self.assertLess(len(found["points"]), 60)
        for number, point in enumerate(found["points"], start=1):
            self.assertEqual(number, point["step"])
            self.assertAlmostEqual(1, point["lr"] / (1e-5 * 1e6 ** ((number - 1) / 59)), 9)
        rates = [point["lr"] for point in found["points"]]
        self.assertIn(found["suggestion"], rates)
        self.assertLess(found["suggestion"], found["best"])
        self.assertAlmostEqual(found["best"] / 10, found["tenth_of_best"])
        lowest = min(found["points"], key=lambda point: point["smoothed"])
        self.assertEqual(lowest["lr"], found["best"])
        self.assert_no_run_left()

    def test_the_text_has_the_curve_the_suggestion_and_the_command_to_use_it(self):
        done = self.lr_find("--set", "threads=1", "-o", "pictures/lr.svg", "--nproc", 2, *RANGE)
        lines = done.stdout.splitlines()
        self.assertEqual(["shapes: learning rate 1e-05 to 10", "smoothed loss"], [lines[0], lines[2]])
        suggestion = next(line for line in lines if line.startswith("suggestion  ")).split()[1]
        self.assertIn("use it      scaletrain launch --nproc 2 --set threads=1 "
                      f"--set optimizer.lr={suggestion} recipe.json", lines)
        self.assertEqual("picture     pictures/lr.svg", lines[-1])
        picture = (self.folder / "pictures/lr.svg").read_text()
        tree = xml.etree.ElementTree.fromstring(picture)
        texts = [text.text for text in tree.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("shapes: learning rate range test", texts)
        self.assertIn(f"steepest: {suggestion}", texts)
        self.assert_no_run_left()

    def test_rates_that_are_too_low_give_all_steps_and_no_suggestion(self):
        flags = ["--from", "1e-12", "--to", "1e-9"]
        found = json.loads(self.lr_find("--json", *flags, expect=1).stdout)
        self.assertEqual(("steps", 100, None),
                         (found["end"], len(found["points"]), found["suggestion"]))
        self.assertIn("no suggestion: the loss does not fall clearly",
                      self.lr_find(*flags, expect=1).stdout)

    def test_a_launch_that_fails_shows_its_error_and_its_exit_status(self):
        done = self.lr_find("--nproc", 3, "--set", "batch.global=8", expect=2)
        self.assertIn("is not a multiple of", done.stderr)
        self.assert_no_run_left()

    def test_what_does_not_fit_is_refused(self):
        for flags, message in (
                (["--from", "1", "--to", "0.1"], "--from: 1 is not below --to 0.1"),
                (["--steps", "9"], "--steps"),
                (["--set", "optimizer.name=nothing"], "--set optimizer.name: \"nothing\" is not an optimizer")):
            with self.subTest(message):
                self.assertIn(message, self.lr_find(*flags, expect=None).stderr)
        self.assert_no_run_left()

    def test_a_stop_ends_the_test_and_removes_its_run(self):
        process = self.start("lr-find", "recipe.json", "--steps", "10000")
        self.wait_for(lambda: list(self.folder.glob("scaletrain-lr-find-*/run/metrics.jsonl")),
                      "the first metrics")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(130, process.returncode)
        self.assert_nothing_left()
        self.assert_no_run_left()


if __name__ == "__main__":
    unittest.main()
