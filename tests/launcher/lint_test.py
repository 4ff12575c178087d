"""scaletrain recipe lint: advice about valid recipes, as text, as JSON and as an exit code."""

import json
import unittest

from launch_support import ROOT, LaunchTestCase

RECIPE = {
    "name": "r",
    "model": {"name": "mlp", "num_classes": 10},
    "data": {"train": {"shards": "train.tar", "augment": ["random_flip"]}, "val": {"shards": "val.tar"}},
    "batch": {"per_device": 32},
    "optimizer": {"name": "sgd", "lr": 0.1},
    "epochs": 10,
}


class LintTest(LaunchTestCase):
    def setUp(self):
        super().setUp()
        (self.folder / "recipe.json").write_text(json.dumps(RECIPE))

    def lint(self, *flags, expect=0):
        return self.run_launcher("recipe", "lint", "recipe.json", *flags, expect=expect)

    def test_a_usual_recipe_has_no_finding(self):
        self.assertEqual("r: nothing unusual\n", self.lint("--strict").stdout)
        self.assertEqual({"recipe": "r", "findings": []}, json.loads(self.lint("--json").stdout))

    def test_a_finding_has_rule_place_reason_and_remedy(self):
        flags = ("--set", "data.val.shards=train.tar")
        text = self.lint(*flags).stdout
        self.assertRegex(text, r"^val-in-train: /data/val: .*train\.tar is in /data/train too\n  why: .+\n  do: .+\n"
                               r"r: 1 finding\n$")
        findings = json.loads(self.lint(*flags, "--json").stdout)["findings"]
        self.assertEqual([{"rule", "place", "found", "why", "remedy"}], [set(one) for one in findings])
        self.assertEqual(("val-in-train", "/data/val"), (findings[0]["rule"], findings[0]["place"]))

    def test_findings_are_exit_1_with_strict_only(self):
        flags = ("--set", "checkpoint.every.epochs=11")
        self.assertIn("checkpoint-never-due", self.lint(*flags).stdout)
        self.assertIn("checkpoint-never-due", self.lint(*flags, "--strict", expect=1).stdout)

    def test_the_number_of_ranks_decides_the_global_batch(self):
        flags = ("--set", "optimizer.lr=0.6")
        # 30 times the usual rate of 32 samples, 0.0125, is 0.375; that of 64 samples is 0.75.
        self.assertIn("learning-rate: /optimizer/lr", self.lint(*flags).stdout)
        self.assertEqual("r: nothing unusual\n", self.lint(*flags, "--nproc", 2).stdout)

    def test_an_invalid_recipe_is_refused_as_recipe_check_does(self):
        self.assertIn("optimizer.lr", self.lint("--set", "optimizer.lr=-1", expect=2).stderr)
        self.assertIn("64", self.lint("--set", "batch.global=64", "--nproc", 3, expect=2).stderr)

    def test_every_rule_is_in_the_reference(self):
        page = (ROOT / "docs/reference/lint.md").read_text()
        rules = set()
        for source in (ROOT / "lib/recipe/lint").glob("*_rules.cpp"):
            for line in source.read_text().splitlines():
                if line.startswith('      {"'):
                    rules.add(line.split('"')[1])
        self.assertGreater(len(rules), 10)
        self.assertEqual([], sorted(rule for rule in rules if f"`{rule}`" not in page))


if __name__ == "__main__":
    unittest.main()
