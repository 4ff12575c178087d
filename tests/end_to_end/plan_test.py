"""scaletrain plan: predicted memory against measured, scores of runs, what a recipe is refused for."""

import json
import unittest

from end_to_end import support

TOLERANCE = 0.01  # of a step's tensors
ADAMW = {"name": "adamw", "lr": 0.001}
MLP = {"name": "mlp", "num_classes": 10, "hidden": 256, "layers": 6}
VIT = {"name": "vit_tiny", "num_classes": 10, "patch_size": 4, "dim": 64, "depth": 4, "heads": 4}
CONFIGURATIONS = {
    "one rank, accumulated": (MLP, 1, {"batch": {"per_device": 32, "accumulate": 2}}),
    "data parallel": (MLP, 2, {}),
    "data parallel, accumulated": (MLP, 2, {"batch": {"per_device": 32, "accumulate": 2}}),
    "FSDP": (MLP, 2, {"parallel": {"shard": 2, "shard_level": "parameters"}}),
    "transformer, recomputed": (VIT, 1, {"recompute": "all"}),
}
if support.LONG:
    CONFIGURATIONS |= {
        "one rank": (MLP, 1, {}),
        "one rank, recomputed": (MLP, 1, {"recompute": "all"}),
        "ZeRO-1": (MLP, 2, {"parallel": {"shard": 2, "shard_level": "optimizer"}}),
        "transformer": (VIT, 1, {}),
    }


class PlanTest(support.RunTestCase):
    def plan(self, *arguments, **options):
        return json.loads(self.run_scaletrain("plan", "--json", "--changes", 0, *arguments, **options).stdout)

    def state(self):
        return {"XDG_STATE_HOME": str(self.folder / "state")}

    def test_predicted_tensor_memory_is_what_a_run_measures(self):
        for name, (model, ranks, changes) in CONFIGURATIONS.items():
            with self.subTest(name):
                recipe = self.recipe(**{"model": model, "optimizer": ADAMW, "threads": 1,
                                        "batch": {"per_device": 64}, **changes})
                planned = self.plan("--nproc", ranks, recipe)
                measured = self.plan("--nproc", ranks, "--probe", recipe)
                self.assertTrue(planned["memory_was_measured"])
                bytes_of = [one["memory_bytes"] - one["memory"]["reserve"] for one in (planned, measured)]
                self.assertAlmostEqual(1, bytes_of[0] / bytes_of[1], delta=TOLERANCE, msg=(planned, measured))
                self.assertGreater(measured["step_s"], 0)

    def test_a_gpu_that_is_not_there_has_time_cost_and_changes(self):
        recipe = self.recipe(batch={"per_device": 16, "global": 256}, epochs=2, steps=None)
        found = json.loads(self.run_scaletrain(
            "plan", "--json", "--device", "h100", "--nproc", 8, "--nodes", 2, "--price", 2.5, "--most", 4,
            recipe).stdout)
        self.assertTrue(found["fits"])
        self.assertEqual(80e9, found["capacity_bytes"])
        # Two epochs of 1,400 samples, 256 at a time.
        self.assertEqual(10, found["steps"])
        self.assertAlmostEqual(found["cost"], found["device_hours"] * 2.5)
        self.assertAlmostEqual(found["device_hours"], 16 * 10 * found["step_s"] / 3600)
        self.assertGreater(found["memory"]["reserve"], 0.5e9)
        # 16 x 16 x 3 inputs, 32 hidden values, 10 classes; 16 samples of two operations forward.
        products = 2 * 16 * (16 * 16 * 3 * 32 + 32 * 10)
        efficiency = 0.36 * 66.9e12
        self.assertAlmostEqual(products / efficiency, found["step"]["forward_s"], delta=products / efficiency / 100)
        self.assertAlmostEqual(2 * found["step"]["forward_s"], found["step"]["backward_s"])

    def test_what_does_not_fit_is_status_1_and_says_what_would(self):
        done = self.run_scaletrain(
            "plan", "--device", "l4", "--nproc", 8, "--most", 12, "--set", "batch={\"per_device\": 1, \"global\": 8}",
            "--set", "parallel={\"shard\": 1}", "--set", "model.depth=44",
            support.ROOT / "recipes/llama_1b.json", expect=1)
        self.assertIn("does not fit: ", done.stdout)
        self.assertIn("fits with one of these:\n  1. ", done.stdout)

    def test_a_finished_run_scores_the_prediction(self):
        recipe = self.recipe()
        self.run_scaletrain("launch", recipe)
        run = self.folder / "recipe"
        score = json.loads(self.run_scaletrain("plan", "--json", "--check", run, env=self.state()).stdout)
        self.assertEqual("cpu", score["device"])
        for value in ("step_s", "memory_bytes", "seconds"):
            self.assertAlmostEqual(score[value]["error"],
                                   score[value]["predicted"] / score[value]["measured"] - 1, places=6)
        scores = self.run_scaletrain("plan", "scores", env=self.state()).stdout.splitlines()
        self.assertEqual(["device", "value", "runs"], scores[0].split()[:3])
        self.assertEqual([["cpu", name, "1"] for name in ("memory_bytes", "seconds", "step_s")],
                         [line.split()[:3] for line in scores[1:]])
        planned = self.plan(recipe, env=self.state())
        self.assertIn("1 scored", planned["accuracy"])

    def test_scores_fill_with_the_runs_that_finished(self):
        self.run_scaletrain("launch", self.recipe("kept"))
        self.run_scaletrain("launch", self.recipe("not_listed"), env={"SCALETRAIN_PLAN_SCORES": "off"})
        scored = self.run_scaletrain("plan", "scores")
        self.assertIn(f"scoring the prediction for {self.folder / 'kept'}\n", scored.stderr)
        self.assertNotIn("not_listed", scored.stderr)
        self.assertEqual([["cpu", name, "1"] for name in ("memory_bytes", "seconds", "step_s")],
                         [line.split()[:3] for line in scored.stdout.splitlines()[1:]])
        again = self.run_scaletrain("plan", "scores")
        self.assertEqual(scored.stdout, again.stdout)
        self.assertNotIn("scoring", again.stderr)

    def test_mistakes_name_the_remedy(self):
        recipe = self.recipe()
        self.assertIn('did you mean "h100"?',
                      self.run_scaletrain("plan", "--device", "h10", recipe, expect=2).stderr)
        self.assertIn("no recipe is given", self.run_scaletrain("plan", expect=2).stderr)
        indivisible = self.recipe(batch={"per_device": 16, "global": 48})
        self.assertIn("/batch", self.run_scaletrain("plan", "--nproc", 2, indivisible, expect=2).stderr)
        self.assertIn("no run was scored yet", self.run_scaletrain("plan", "scores", env=self.state()).stdout)


if __name__ == "__main__":
    unittest.main()
