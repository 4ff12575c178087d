"""The best checkpoint: chosen by validation, kept, tested at the end, and what if it is not there."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest

from end_to_end import support

BEST_FIRST = {"steps": 12, "checkpoint": {"every": {"steps": 4}, "async": False, "keep_last": 1},
              "validate": {"every": {"steps": 4}}, "optimizer": {"name": "sgd", "lr": 1e-12}}


class BestTest(support.RunTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        home = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        cls.addClassCleanup(home.cleanup)
        cls.stopped = pathlib.Path(home.name) / "recipe"

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

    def test_the_k_best_are_kept_and_the_test_says_which_it_tested(self):
        # No validation after the first one is better, and equals stay behind the earlier.
        run = self.folder / "recipe"
        recipe = self.recipe(**{**BEST_FIRST, "steps": 20, "checkpoint":
                                {"every": {"steps": 1000}, "async": False, "keep_last": 1,
                                 "keep_best": 2}})
        self.run_scaletrain("launch", recipe, env={"SCALETRAIN_FAULT": "kill@14"}, expect=137)
        top1 = {r["step"]: r["top1"] for r in support.records(run, "eval")}
        self.assertEqual(top1[4], top1[8], "the learning rate is too high for this test")
        saved = sorted(path.name for path in (run / "checkpoints").iterdir())
        self.assertEqual(["best", "latest", "step-00000004", "step-00000008"], saved)
        result = self.run_scaletrain("resume", run)
        saved = sorted(path.name for path in (run / "checkpoints").glob("step-*"))
        self.assertEqual(["step-00000004", "step-00000008", "step-00000020"], saved)
        self.assertEqual([[4, top1[4]], [8, top1[8]]], self.state("recipe", "latest")["best_steps"])
        (test,) = [r for r in support.records(run, "eval") if r["split"] == "test"]
        self.assertEqual((4, 0), (test["step"], test["epoch"]))
        finished = json.loads((run / "finished.json").read_text())
        self.assertEqual((20, 4), (finished["step"], finished["test_step"]))
        self.assertRegex(result.stderr, r"test top-1 .*, step 4\)")

    def test_a_later_validation_that_is_better_than_the_worst_is_kept(self):
        run = self.folder / "recipe"
        self.run_scaletrain("launch", self.recipe(
            steps=36, optimizer={"name": "adamw", "lr": 0.002}, validate={"every": {"steps": 4}},
            checkpoint={"every": {"steps": 1000}, "keep_last": 1, "keep_best": 3}))
        top1 = {r["step"]: r["top1"] for r in support.records(run, "eval") if r["split"] == "val"}
        best = sorted(top1, key=lambda step: (-top1[step], step))[:3]
        self.assertEqual(best, [step for step, _ in self.state("recipe", "latest")["best_steps"]])
        kept = {int(path.name[5:]) for path in (run / "checkpoints").glob("step-*")}
        self.assertEqual({*best, 36}, kept)

    def stop_behind_best(self, **changes):
        """A run that was killed after step 8 and whose best checkpoint is that of step 4. Without
        changes it is trained once, and copied."""
        recipe, run = self.recipe(**{**BEST_FIRST, **changes}), self.folder / "recipe"
        if self.stopped.exists() and not changes:
            shutil.copytree(self.stopped, run, symlinks=True)
            return recipe
        self.run_scaletrain("launch", recipe, env={"SCALETRAIN_FAULT": "kill@10"}, expect=137)
        if not changes:
            shutil.copytree(run, self.stopped, symlinks=True)
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

    def test_one_that_cannot_be_read_at_the_end_may_be_the_next_time(self):
        self.stop_behind_best()
        unread = "checkpoints/step-00000004/model.safetensors"
        result = self.run_scaletrain("resume", self.folder / "recipe", expect=74,
                                     env={**self.faulty_libc(), "FAULTY_READ": unread})
        self.assertIn(f"{unread}: cannot be read: Input/output error (EIO)", result.stderr)
        result = self.run_scaletrain("resume", self.folder / "recipe")
        self.assertNotIn("the last model is tested", result.stderr)
        self.assertEqual(4, self.state("recipe", "best")["step"])

    def test_a_state_that_cannot_be_read_in_a_save_loses_nothing(self):
        self.stop_behind_best()
        unread = "checkpoints/step-00000004/state.json"
        result = self.run_scaletrain("resume", self.folder / "recipe", expect=74,
                                     env={**self.faulty_libc(), "FAULTY_READ": unread})
        self.assertIn("the checkpoint of step 4 is kept", result.stderr)
        self.assertEqual(4, self.state("recipe", "best")["step"])

    def test_links_that_a_killed_save_left_behind_are_put_right(self):
        recipe = self.stop_behind_best()
        checkpoints = self.folder / "recipe/checkpoints"
        for link in ("latest", "best"):
            (checkpoints / link).unlink()
        (checkpoints / "latest").symlink_to("step-00000004")
        # Killed again before a save of its own.
        self.run_scaletrain("launch", "--resume", "auto", recipe,
                            env={"SCALETRAIN_FAULT": "kill@10"}, expect=137)
        self.assertEqual(("step-00000008", "step-00000004"),
                         tuple(os.readlink(checkpoints / link) for link in ("latest", "best")))

    def test_in_another_folder_the_best_is_chosen_anew(self):
        self.stop_behind_best()
        result = self.run_scaletrain(
            "resume", self.folder / "recipe/checkpoints/step-00000008", "--set",
            f"output={self.folder / 'other'}")
        self.assertIn("the choice starts again", result.stderr)
        self.assertEqual(12, self.state("other", "best")["best_step"])
        self.assertIn("test top-1", result.stderr)

    def test_one_that_was_not_kept_is_not_missed(self):
        self.stop_behind_best(checkpoint={"every": {"steps": 4}, "async": False, "keep_last": 1,
                                          "keep_best": 0})
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
        self.assertIn("warning: the resumed run is not bit for bit equal: samples of the training "
                      "set 320, was 1400", result.stderr)
        state = json.loads((self.folder / "recipe/checkpoints/latest/state.json").read_text())
        self.assertEqual((2, 5), (state["epoch"], state["step_in_epoch"]))
        # What comes every so many minutes has not seen the last step: the next run's first does.
        self.assertTrue(0 < state["seen_s"] < state["trained_s"])
        epochs = {r["step"]: r["epoch"] for r in support.records(self.folder / "recipe", "train")}
        self.assertEqual([0, 1, 1, 2], [epochs[step] for step in (30, 31, 40, 41)])


if __name__ == "__main__":
    unittest.main()
