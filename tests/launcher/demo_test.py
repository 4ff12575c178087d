"""scaletrain demo: a whole run on pictures that it draws, in an empty folder."""

import json
import os
import re
import shlex
import unittest

from launcher.launch_support import LaunchTestCase


class Demo(LaunchTestCase):
    def test_demo_trains_and_prints_commands_that_work(self):
        done = self.run_launcher("demo", "--output", "shapes")
        records = [json.loads(line)
                   for line in (self.folder / "shapes/run/metrics.jsonl").read_text().splitlines()]
        validations = [record["top1"] for record in records
                       if record["event"] == "eval" and record["split"] == "val"]
        self.assertGreater(validations[-1], 0.5)
        self.assertGreater(validations[-1], validations[0])
        self.assertTrue((self.folder / "shapes/run/finished.json").exists())

        commands = [shlex.split(line)[1:] for line in done.stdout.splitlines()
                    if line.startswith("  scaletrain ")]
        self.assertEqual(["status", "watch", "report", "eval", "predict", "recipe"],
                         [command[0] for command in commands])
        for command in commands[:-1]:  # the last one needs a folder of images
            with self.subTest(command[0]):
                self.run_launcher(*command)
        self.assertTrue((self.folder / "shapes/report.html").exists())
        self.assertNotIn("warning", self.run_launcher("recipe", "check", "shapes/recipe.json").stderr)
        schema = json.loads((self.folder / "shapes" / json.loads(
            (self.folder / "shapes/recipe.json").read_text())["$schema"]).read_text())
        self.assertIn("optimizer", schema["properties"])

    def test_its_report_shows_the_first_batch_and_the_newest_mistakes(self):
        self.run_launcher("demo", "--output", "shapes")
        index = [json.loads(line) for line in
                 (self.folder / "shapes/run/media/index.jsonl").read_text().splitlines()]
        self.assertEqual(("train/batch", 1, 16, 4),
                         (index[0]["name"], index[0]["step"], len(index[0]["captions"]), index[0]["columns"]))
        self.assertIn("val/worst", {line["name"] for line in index})
        for line in index:
            content = (self.folder / "shapes/run/media" / line["file"]).read_bytes()
            self.assertEqual(b"\x89PNG", content[:4])
        self.run_launcher("report", "shapes/run", "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        self.assertIn('"name":"train/batch"', page.replace(": ", ":"))

    @unittest.skipUnless(os.environ.get("SCALETRAIN_LONG") == "1", "takes minutes: SCALETRAIN_LONG=1")
    def test_minutes_are_measured_by_a_first_epoch(self):
        done = self.run_launcher("demo", "--minutes", 1, "--output", "shapes")
        seconds, epochs = re.search(r"an epoch takes ([0-9.]+) s here: training (\d+) epochs? in about 1 minute",
                                    done.stderr).groups()
        recipe = json.loads((self.folder / "shapes/recipe.json").read_text())
        self.assertEqual(("resnet18", int(epochs)), (recipe["model"]["name"], recipe["epochs"]))
        self.assertAlmostEqual(60 / float(seconds), recipe["epochs"], delta=1 + 6 / float(seconds))

    def test_a_folder_that_exists_is_kept(self):
        (self.folder / "demo").mkdir()
        self.assertIn("demo exists already", self.run_launcher("demo", expect=2).stderr)
        self.assertEqual([], list((self.folder / "demo").iterdir()))


if __name__ == "__main__":
    unittest.main()
