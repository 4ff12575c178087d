"""scaletrain models: versions of models with stages and lineage, in files."""

import hashlib
import json
import unittest

from launcher import checkpoint_support
from launcher.runs_support import RunsTestCase


class Models(RunsTestCase):
    def setUp(self):
        super().setUp()
        self.run_folder = self.write_run("run")
        (self.run_folder / "cards").mkdir()
        (self.run_folder / "cards/train.json").write_text('{"samples": 1}')
        self.checkpoint = checkpoint_support.write_checkpoint(
            self.run_folder, checkpoint_support.state_of(20), (self.run_folder / "recipe.json").read_text())

    def stages(self):
        return [version["stage"] for version in self.json_of("models", "show", "digits", "--json")["versions"]]

    def test_a_version_has_its_lineage(self):
        version = self.json_of("models", "add", "digits", "run", "--note", "first", "--json")
        digest = hashlib.sha256((self.checkpoint / "manifest.json").read_bytes()).hexdigest()
        self.assertEqual((1, "none", 20, digest, "first"), tuple(
            version[key] for key in ("version", "stage", "step", "manifest_digest", "note")))
        self.assertRegex(version["model_digest"], "^[0-9a-f]{64}$")
        self.assertEqual(str(self.run_folder.resolve()), version["run"])
        self.assertEqual({"train": hashlib.sha256(b'{"samples": 1}').hexdigest()}, version["data_cards"])
        self.assertEqual(0.75, version["results"]["val_top1"])
        self.assertEqual(version, self.json_of("models", "show", "digits", "1", "--json"))

    def test_a_version_is_shown_with_units(self):
        self.run_launcher("models", "add", "digits", "run", "--note", "first")
        text = self.run_launcher("models", "show", "digits").stdout
        self.assertTrue(text.startswith("digits version 1: none\n"), text)
        for row in (r"added              \d{4}-\d\d-\d\d \d\d:\d\d", "step               20", "val top-1          75.00 %",
                    "memory             0.30 GB", "last step          40", "data cards train   [0-9a-f]{64}",
                    "note               first"):
            self.assertRegex(text, f"(?m)^  {row}$")
        self.assertNotIn(".0\n", text)

    def test_promotion_archives_and_rollback_restores(self):
        for _ in range(3):
            self.run_launcher("models", "add", "digits", self.checkpoint)
        self.run_launcher("models", "promote", "digits", 1)
        self.run_launcher("models", "promote", "digits", 2, "--to", "staging")
        self.assertEqual(["production", "staging", "none"], self.stages())
        self.run_launcher("models", "promote", "digits", 2)
        self.run_launcher("models", "promote", "digits", 3)
        self.assertEqual(["archived", "archived", "production"], self.stages())
        self.assertEqual("digits version 2: production\n", self.run_launcher("models", "rollback", "digits").stdout)
        self.run_launcher("models", "rollback", "digits")
        self.assertEqual(["production", "archived", "archived"], self.stages())
        self.assertIn("no version was in production before",
                      self.run_launcher("models", "rollback", "digits", expect=2).stderr)

    def test_versions_that_are_added_together_are_all_kept(self):
        started = [self.start("models", "add", "digits", self.checkpoint) for _ in range(4)]
        for process in started:
            _, errors = process.communicate(timeout=60)
            self.assertEqual(0, process.returncode, errors)
        versions = json.loads((self.folder / "models/digits.json").read_text())["versions"]
        self.assertEqual([1, 2, 3, 4], [version["version"] for version in versions])

    def test_models_are_listed(self):
        self.assertEqual("model  version  stage  step  checkpoint\n", self.run_launcher("models", "ls").stdout)
        self.run_launcher("models", "add", "digits", "run", "--stage", "production", "--registry", "other")
        lines = self.run_launcher("models", "ls", "--registry", "other").stdout.splitlines()
        self.assertRegex(lines[1], r"^digits +1 +production +20 +run/checkpoints/step-")

    def test_wrong_words_are_refused_by_name(self):
        self.assertIn("there is no model \"x\"", self.run_launcher("models", "show", "x", expect=2).stderr)
        self.run_launcher("models", "add", "digits", "run")
        self.assertIn("has no version 7", self.run_launcher("models", "promote", "digits", 7, expect=2).stderr)
        self.assertIn("is not a stage",
                      self.run_launcher("models", "promote", "digits", 1, "--to", "live", expect=2).stderr)
        self.assertIn("is not a model name", self.run_launcher("models", "add", "../x", "run", expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
