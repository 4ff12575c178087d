"""scaletrain launch --overfit N: a wiring test on a few fixed samples."""

import json
import unittest

from launcher.launch_support import LaunchTestCase


class Overfit(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.run_launcher("data", "synth", "set", "--samples", 24, "--classes", 3, "--size", 32)

    def recipe(self, **changes):
        (self.folder / "recipe.json").write_text(json.dumps({
            "name": "shapes", "model": {"name": "mlp", "num_classes": 3},
            "data": {"train": {"shards": "set/train-*.tar", "augment": ["random_flip"]},
                     "val": {"shards": "set/train-*.tar"}, "image_size": 16},
            "batch": {"per_device": 4}, "epochs": 3, "optimizer": {"name": "adamw", "lr": 0.001},
            "loss": {"name": "cross_entropy", "label_smoothing": 0.1}, "ema": {"decay": 0.9},
            "schedule": {"warmup": {"epochs": 1}, "decay": "cosine"}, "output": "run", **changes}))

    def test_a_model_that_learns_brings_the_loss_near_zero(self):
        self.recipe()
        done = self.run_launcher("launch", "--overfit", 8, "--nproc", 2, "recipe.json")
        self.assertIn("in 200 steps: the model can learn", done.stderr)
        used = json.loads((self.folder / "run-overfit/recipe.json").read_text())
        self.assertEqual((4, 8, 8), (used["batch"]["per_device"], used["batch"]["global"],
                                     used["data"]["train"]["limit"]))
        self.assertFalse((self.folder / "run").exists())

    def test_a_second_test_replaces_the_first_one_and_no_other_folder(self):
        self.recipe()
        first = self.run_launcher("launch", "--overfit", 8, "recipe.json")
        self.assertNotIn("replaces the earlier --overfit check", first.stderr)
        again = self.run_launcher("launch", "--overfit", 4, "recipe.json")
        self.assertIn("run-overfit: replaces the earlier --overfit check", again.stderr)
        used = json.loads((self.folder / "run-overfit/recipe.json").read_text())
        self.assertEqual(4, used["data"]["train"]["limit"])

        self.recipe(output="own-overfit")
        self.run_launcher("launch", "recipe.json")
        self.recipe(output="own")
        kept = self.run_launcher("launch", "--overfit", 4, "recipe.json", expect=2)
        self.assertIn("own-overfit: holds checkpoints of an earlier run", kept.stderr)
        self.assertTrue((self.folder / "own-overfit/finished.json").exists())

    def test_a_model_that_does_not_learn_names_the_usual_causes(self):
        self.recipe(optimizer={"name": "sgd", "lr": 1e-9})
        done = self.run_launcher("launch", "--overfit", 8, "recipe.json", expect=1)
        self.assertIn("Usual causes:\n  the learning rate is too low or too high", done.stderr)

    def test_what_does_not_fit_is_refused(self):
        self.recipe()
        for flags, message in (
                (["--overfit", 7, "--nproc", 2], "7 samples cannot be divided among 2 ranks\n  give a multiple of 2"),
                (["--overfit", 8, "--resume", "auto"], "starts a new run, so it does not go with --resume")):
            with self.subTest(message):
                self.assertIn(f"--overfit: {message}",
                              self.run_launcher("launch", *flags, "recipe.json", expect=2).stderr)
        self.assertIn("--overfit: is for recipes",
                      self.run_launcher("launch", "--overfit", 8, "--", "true", expect=2).stderr)
        self.assertFalse((self.folder / "run-overfit").exists())


if __name__ == "__main__":
    unittest.main()
