"""The best checkpoint: chosen by validation, kept, tested at the end, and what if it is not there."""

import json
import unittest

from end_to_end import support

BEST_FIRST = {"steps": 12, "checkpoint": {"every": {"steps": 4}, "keep_last": 1},
              "validate": {"every": {"steps": 4}}, "optimizer": {"name": "sgd", "lr": 1e-12}}


class BestTest(support.RunTestCase):
    def state(self, run, checkpoint):
        return json.loads((self.folder / run / "checkpoints" / checkpoint / "state.json").read_text())

    def test_the_validation_at_the_end_counts(self):
        # Not due at the last step, so that only the end validates it.
        self.run_scaletrain("launch", self.recipe(steps=30, batch={"per_device": 64},
                                                  optimizer={"name": "adamw", "lr": 0.002},
                                                  validate={"every": {"steps": 12}},
                                                  checkpoint={"every": {"steps": 10}}))
        found = {r["step"]: r["top1"] for r in support.records(self.folder / "recipe", "eval")
                 if r["split"] == "val"}
        best = max(found, key=found.get)
        self.assertEqual(30, best, f"the digits are not learnt: {found}")
        self.assertEqual(30, self.state("recipe", "best")["best_step"])
        self.assertEqual(found[30], self.state("recipe", "latest")["best_metric"])

    def stop_behind_best(self, name="recipe", **changes):
        """A run that was killed after step 8 and whose best checkpoint is that of step 4."""
        recipe = self.recipe(name, **{**BEST_FIRST, **changes})
        self.run_scaletrain("launch", recipe, env={"SCALETRAIN_FAULT": "kill@10"}, expect=137)
        return recipe

    def test_a_damaged_one_is_not_tested(self):
        self.stop_behind_best()
        self.assertEqual(4, self.state("recipe", "best")["step"])
        weights = self.folder / "recipe/checkpoints/step-00000004/model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        result = self.run_scaletrain("resume", self.folder / "recipe")
        self.assertIn("warning: " + str(weights), result.stderr)
        self.assertIn("the last model is tested, not the best", result.stderr)
        self.assertIn("test top-1", result.stderr)

    def test_in_another_folder_the_best_is_chosen_anew(self):
        self.stop_behind_best()
        result = self.run_scaletrain(
            "resume", self.folder / "recipe/checkpoints/step-00000008", "--set",
            f"output={self.folder / 'other'}")
        self.assertIn("the best is chosen anew", result.stderr)
        self.assertEqual(12, self.state("other", "best")["best_step"])
        self.assertIn("test top-1", result.stderr)

    def test_one_that_was_not_kept_is_not_missed(self):
        self.stop_behind_best(checkpoint={"every": {"steps": 4}, "keep_last": 1, "keep_best": 0})
        self.assertFalse((self.folder / "recipe/checkpoints/step-00000004").exists())
        self.run_scaletrain("resume", self.folder / "recipe", "--set", "checkpoint.keep_best=1")
        self.assertEqual(12, self.state("recipe", "best")["best_step"])

    def test_a_finished_run_goes_on_elsewhere_with_a_checkpoint_of_its_own(self):
        self.run_scaletrain("launch", self.recipe(**BEST_FIRST))
        result = self.run_scaletrain(
            "resume", self.folder / "recipe/checkpoints/step-00000012", "--set",
            f"output={self.folder / 'other'}")
        self.assertTrue((self.folder / "other/checkpoints/step-00000012").exists(), result.stderr)


class ResumeChangedTest(support.RunTestCase):
    def test_a_resume_that_does_not_fit_leaves_the_run_as_it_was(self):
        self.run_scaletrain("launch", self.recipe(steps=4))
        result = self.run_scaletrain("resume", self.folder / "recipe", "--set", "model.hidden=64",
                                     "--allow", "model.hidden", "--set", "steps=8",
                                     "--allow", "steps", expect=65)
        self.assertIn("hidden", result.stderr + (self.folder / "recipe/recipe.json").read_text())
        stored = json.loads((self.folder / "recipe/recipe.json").read_text())
        self.assertEqual((32, 4), (stored["model"]["hidden"], stored["steps"]))
        self.run_scaletrain("resume", self.folder / "recipe", "--set", "steps=8", "--allow", "steps")
        self.assertEqual(8, json.loads((self.folder / "recipe/recipe.json").read_text())["steps"])

    def test_a_smaller_set_begins_the_next_epoch(self):
        changes = {"steps": 30, "checkpoint": {"every": {"steps": 30}}, "batch": {"per_device": 32}}
        self.run_scaletrain("launch", self.recipe(**changes))  # of 43 steps in an epoch
        result = self.run_scaletrain(
            "resume", self.folder / "recipe", "--set", "data.train.limit=320", "--set", "steps=45",
            "--allow", "data.train.limit", "--allow", "steps")  # of 10
        self.assertIn("warning: not bit for bit as the run it continues: samples of the training "
                      "set 320, was 1400", result.stderr)
        state = json.loads((self.folder / "recipe/checkpoints/latest/state.json").read_text())
        self.assertEqual((2, 5), (state["epoch"], state["step_in_epoch"]))
        # What comes every so many minutes has not seen the last step: the next run's first does.
        self.assertTrue(0 < state["seen_s"] < state["trained_s"])
        epochs = {r["step"]: r["epoch"] for r in support.records(self.folder / "recipe", "train")}
        self.assertEqual([0, 1, 1, 2], [epochs[step] for step in (30, 31, 40, 41)])


if __name__ == "__main__":
    unittest.main()
