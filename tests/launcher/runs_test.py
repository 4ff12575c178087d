"""scaletrain runs: a table of the runs below a folder."""

import re
import unittest

from launcher.runs_support import RunsTestCase, evaluation, train


class Runs(RunsTestCase):
    def setUp(self):
        super().setUp()
        for number, (name, top1, loss) in enumerate((("runs/a", 0.5, 0.3), ("runs/sweep/b", 0.75, 0.1),
                                                     ("runs/sweep/c", 0.625, 0.2))):
            records = [train(40, loss=loss, time=2000.0 + number), evaluation(40, top1, time=2001.0 + number)]
            self.write_run(name, records,
                           optimizer={"name": "sgd" if name == "runs/a" else "adamw", "lr": 0.1 ** (number + 1)})
        (self.folder / "runs/empty").mkdir()

    def paths(self, *flags):
        return [run["path"] for run in self.json_of("runs", "--json", *flags)]

    def test_the_newest_run_comes_first(self):
        self.assertEqual(["runs/sweep/c", "runs/sweep/b", "runs/a"], self.paths())

    def test_sorted_by_a_measure_the_best_run_comes_first(self):
        self.assertEqual(["runs/sweep/b", "runs/sweep/c", "runs/a"], self.paths("--sort", "val_top1"))
        self.assertEqual(["runs/sweep/b", "runs/sweep/c", "runs/a"], self.paths("--sort", "loss"))
        self.assertEqual(["runs/a", "runs/sweep/c", "runs/sweep/b"], self.paths("--sort", "loss", "--reverse"))

    def test_filtered_by_recipe_keys(self):
        self.assertEqual(["runs/a"], self.paths("--where", "optimizer.name=sgd"))
        self.assertEqual(["runs/sweep/c", "runs/sweep/b"], self.paths("--where", "optimizer.name!=sgd"))
        self.assertEqual(["runs/sweep/b"], self.paths("--where", "optimizer.lr<0.05", "--where", "optimizer.lr>=0.005"))
        self.assertEqual([], self.paths("--where", "no.such.key=1"))

    def test_the_table_has_a_line_for_each_run(self):
        lines = self.run_launcher("runs", "runs/sweep").stdout.splitlines()
        self.assertEqual(3, len(lines))
        self.assertEqual(["run", "state", "val top-1", "val top-5", "val loss", "loss", "step", "samples/s", "time",
                          "started"], re.split("  +", lines[0]))
        self.assertRegex(lines[1], r"^runs/sweep/c +finished +62\.50 % +100\.00 % ")

    def test_the_results_are_those_of_the_metrics(self):
        (run,) = self.json_of("runs", "--json", "runs/a")
        self.assertEqual(("finished", 2000.0), (run["state"], run["started"]))
        self.assertEqual({"val_top1": 0.5, "val_top5": 1.0, "val_loss": 0.5, "loss": 0.3, "samples_per_s": 740.0,
                          "memory_bytes": 300000040.0, "seconds": 1.0, "step": 40.0, "attempts": 1.0}, run["results"])

    def test_model_speed_has_columns_where_a_run_has_counted_it(self):
        self.write_run("speeds/gpu", [train(step, step_flops=2e12, tflops_per_s=300.5, mfu=0.25) for step in (10, 20)])
        self.write_run("speeds/old")
        lines = [re.split("  +", line) for line in self.run_launcher("runs", "speeds").stdout.splitlines()]
        self.assertEqual(["samples/s", "TFLOP/s", "MFU", "time"], lines[0][-5:-1])
        cells = {line[0]: line for line in lines}
        self.assertIn("300.5  25.0 %", "  ".join(cells["speeds/gpu"]))
        self.assertIn("-  -", "  ".join(cells["speeds/old"]))

    def test_wrong_words_are_refused_by_name(self):
        self.assertIn("no run has \"top1\"", self.run_launcher("runs", "--sort", "top1", expect=2).stderr)
        self.assertIn("is not a condition", self.run_launcher("runs", "--where", "optimizer", expect=2).stderr)
        self.assertIn("is not a folder", self.run_launcher("runs", "nowhere", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
