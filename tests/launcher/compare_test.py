"""scaletrain compare: differences of runs, and mean and spread over seeds."""

import json
import statistics
import unittest

from launcher.runs_support import RunsTestCase, evaluation, train


class Compare(RunsTestCase):
    def row(self, comparison, part, name):
        key = "key" if part == "recipe" else "name"
        (found,) = [row for row in comparison[part] if row[key] == name]
        return found

    def test_only_what_differs_is_shown(self):
        self.write_run("a", name="same")
        self.write_run("b", [train(40, loss=0.06), evaluation(40, 0.5)], name="same",
                       optimizer={"name": "adamw", "lr": 0.002}, environment={"git_commit": "b" * 40})
        text = self.run_launcher("compare", "a", "b").stdout
        self.assertRegex(text, r"(?m)^optimizer\.lr +0\.001 +0\.002$")
        self.assertRegex(text, r"(?m)^code +a{37}\.\.\. +b{37}\.\.\.$|^code +a{40} +b{40}$")
        self.assertRegex(text, r"(?m)^val top-1 +75\.00 % @20 +50\.00 % @40 +-25\.00 points$")
        self.assertRegex(text, r"(?m)^loss +0\.0500 @40 +0\.0600 @40 +\+20\.0 %$")
        self.assertNotIn("optimizer.name", text)
        self.assertNotIn("torch", text)
        self.assertIn("optimizer.name", self.run_launcher("compare", "--all", "a", "b").stdout)

    def test_the_first_difference_of_long_values_is_visible(self):
        for name in "ab":
            shards = "/storage/of/a/team/with/a/long/path/to/its/shards/" + name + "-{000000..000003}.tar"
            self.write_run(name, name="same", data={"train": {"shards": shards}})
        text = self.run_launcher("compare", "a", "b").stdout
        self.assertRegex(text, r"(?m)^data\.train\.shards +\.\.\./its/shards/a-\{000000\.\.000003\}\.tar +"
                               r"\.\.\./its/shards/b-\{000000\.\.000003\}\.tar$")

    def test_runs_that_differ_in_the_seed_alone_have_a_mean_and_a_spread(self):
        top1 = {"a": (0.75, 0.5, 0.625), "b": (0.25, 0.375)}
        for name, values in top1.items():
            for seed, value in enumerate(values):
                self.write_run(f"{name}{seed}", [train(40), evaluation(40, value)], seed=seed, name=name,
                               optimizer={"name": "adamw", "lr": 0.001 if name == "a" else 0.002})
        comparison = self.json_of("compare", "--json", "a0", "b0", "a1", "b1", "a2")
        self.assertEqual([{"runs": ["a0", "a1", "a2"], "seeds": [0, 1, 2]}, {"runs": ["b0", "b1"], "seeds": [0, 1]}],
                         comparison["groups"])
        row = self.row(comparison, "results", "val_top1")
        for value, name in zip(row["values"], "ab"):
            self.assertAlmostEqual(statistics.mean(top1[name]), value["mean"])
            self.assertAlmostEqual(statistics.stdev(top1[name]), value["spread"])
            self.assertEqual(list(top1[name]), value["values"])
        self.assertAlmostEqual(0.3125 - 0.625, row["difference"])
        text = self.run_launcher("compare", "a0", "b0", "a1", "b1", "a2").stdout
        self.assertRegex(text, r"(?m)^val top-1 +62\.50 % \+- 12\.50 % \(3 seeds\) +31\.25 % \+- ")
        self.assertIn("a0 and 2 more", text)

    def test_equal_runs_with_one_seed_are_no_repetition(self):
        self.write_run("a", name="same")
        self.write_run("b", name="same")
        comparison = self.json_of("compare", "--json", "a", "b")
        self.assertEqual(2, len(comparison["groups"]))
        self.assertEqual(0, self.row(comparison, "results", "loss")["difference"])

    def test_data_cards_are_compared(self):
        for name, samples in (("a", 1), ("b", 2)):
            run = self.write_run(name)
            (run / "cards").mkdir()
            (run / "cards/train.json").write_text(json.dumps({"samples": samples}))
        first, second = self.row(self.json_of("compare", "--json", "a", "b"), "data", "data card of train")["values"]
        self.assertRegex(first, "^[0-9a-f]{16}$")
        self.assertNotEqual(first, second)

    def test_one_run_is_refused(self):
        self.write_run("a")
        self.run_launcher("compare", "a", expect=2)


if __name__ == "__main__":
    unittest.main()
