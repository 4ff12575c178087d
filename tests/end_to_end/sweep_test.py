"""scaletrain sweep with real training: the table says what the runs' metrics say, and a sweep that is
killed ends as one that was left alone."""

import csv
import json
import unittest

from end_to_end import support


class SweepTest(support.RunTestCase):
    AXES = ["optimizer.lr=[0.01,0.05]"]

    def sweep(self, recipe, *arguments):
        done = self.run_scaletrain("sweep", recipe, *self.AXES, "--devices", "cpu", "--table", "csv",
                                   *arguments)
        return {row["optimizer.lr"]: row for row in csv.DictReader(done.stdout.splitlines())}

    def losses(self, row, folder):
        return [r["loss"] for r in support.records(self.folder / folder / row["name"], "train")]

    def test_a_killed_sweep_ends_as_one_that_was_left_alone(self):
        recipe = self.recipe(steps=40, validate={"every": {"steps": 10}},
                             checkpoint={"every": {"steps": 5}}, threads=1)
        calm = self.sweep(recipe, "--folder", "calm")
        self.assertEqual({"0.01", "0.05"}, set(calm))
        for row in calm.values():
            evals = [r for r in support.records(self.folder / "calm" / row["name"], "eval")
                     if r["split"] == "val"]
            self.assertEqual(f"{max(r['top1'] for r in evals):.4f}", row["best_val_top1"])
            self.assertEqual(f"{evals[-1]['top1']:.4f}", row["last_val_top1"])
            self.assertEqual("40", row["step"])
        self.assertNotEqual(calm["0.01"]["train_loss"], calm["0.05"]["train_loss"])

        process = self.start("sweep", recipe, *self.AXES, "--devices", "cpu", "--folder", "rough")
        saved = self.folder / "rough" / calm["0.05"]["name"] / "checkpoints"
        support.wait_until(lambda: saved.exists() and list(saved.glob("step-*")),
                           "a checkpoint of the second run")
        process.kill()
        process.wait(support.TIMEOUT_S)
        self.assert_nothing_left(process)
        rough = self.sweep(recipe, "--folder", "rough")
        for value, row in rough.items():
            self.assertEqual("done", row["state"])
            self.assertEqual(self.losses(calm[value], "calm"), self.losses(row, "rough"))
        jobs = [json.loads(path.read_text())
                for path in sorted((self.folder / "rough/jobs").iterdir())]
        self.assertEqual([1, 2], [job["starts"] for job in jobs])


if __name__ == "__main__":
    unittest.main()
