"""scaletrain demo: a whole run on pictures that it draws, in an empty folder."""

import json
import shlex
import unittest

from launcher.launch_support import LaunchTestCase


class Demo(LaunchTestCase):
    def test_it_trains_and_the_commands_that_it_prints_work(self):
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

    def test_a_folder_that_exists_is_kept(self):
        (self.folder / "demo").mkdir()
        self.assertIn("demo exists already", self.run_launcher("demo", expect=2).stderr)
        self.assertEqual([], list((self.folder / "demo").iterdir()))


if __name__ == "__main__":
    unittest.main()
