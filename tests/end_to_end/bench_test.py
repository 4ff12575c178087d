"""scaletrain bench: peak bytes by kind and speed of a recipe, with each technique that changes it."""

import json
import signal
import unittest

from end_to_end import support

KINDS = ["parameters", "gradients", "optimizer", "activations", "inputs", "other"]
HIDDEN = 256


class BenchTest(support.RunTestCase):
    """What docs/lab/techniques.md shows:

    scaletrain bench memory recipes/digits_mlp.json
    scaletrain bench speed --steps 5 recipes/digits_mlp.json
    scaletrain bench memory --nproc 2 --set batch.per_device=64 --json recipes/digits_mlp.json > memory.json
    """

    def bench(self, what, *flags, **batch):
        # Wide enough for activations to count, and of as many layers as there is to run again.
        recipe = self.recipe(model={"name": "mlp", "num_classes": 10, "hidden": HIDDEN,
                                    "layers": 6},
                             optimizer={"name": "adamw", "lr": 0.001}, batch=batch)
        done = self.run_scaletrain("bench", what, recipe, *flags)
        self.assertFalse((self.folder / "recipe").exists(), "no run's folder is made")
        return done.stdout

    def test_memory_by_kind(self):
        found = json.loads(self.bench("memory", "--json", "--nproc", 2, per_device=256))
        costs = {cost["technique"]: cost for cost in found["costs"]}
        self.assertEqual(2, found["ranks"])
        self.assertEqual(512, found["global_batch"])
        whole = costs["as it is"]["peak_bytes"]
        self.assertEqual(sum(whole[kind] for kind in KINDS), whole["total"])
        weights = 16 * 16 * 3 * HIDDEN + 5 * HIDDEN * HIDDEN + HIDDEN * 10 + 6 * HIDDEN + 10
        self.assertAlmostEqual(4 * weights / whole["parameters"], 1, delta=0.01)
        # AdamW's two moments; and beside them what a step needs for a moment.
        self.assertGreaterEqual(whole["optimizer"], 2 * 4 * weights)
        # Of all kinds together the peak depends on when an exchange's memory is given back.
        for name in ("recompute all", "accumulate x4"):
            peak = costs[name]["peak_bytes"]
            self.assertLess(peak["activations"], whole["activations"], name)
            self.assertAlmostEqual(whole["total"] / peak["total"], costs[name]["times"], places=3)
        half = whole["activations"] // 2_000_000
        budgets = {name: cost for name, cost in costs.items() if name.startswith("recompute to ")}
        self.assertEqual([f"recompute to {half} MB"] if half > 0 else [], list(budgets))
        for name, cost in budgets.items():
            self.assertLess(cost["peak_bytes"]["activations"], whole["activations"], name)

    def test_speed_as_a_table_with_the_batch_that_fits(self):
        lines = self.bench("speed", "--steps", 3, per_device="auto", memory_mb=1000,
                           **{"global": 64}).splitlines()
        self.assertEqual(["technique", "steps/s", "samples/s", "faster"], lines[0].split())
        self.assertTrue(lines[1].startswith("as it is (64 a device) "), lines[1])
        self.assertTrue(lines[1].endswith("x1.00"), lines[1])
        self.assertGreater(len(lines), 5)
        self.assertEqual([], [line for line in lines[1:] if "(64 a device)" not in line])

    def test_a_signal_ends_it_in_any_technique(self):
        temporary = self.folder / "tmp"
        temporary.mkdir()
        process = self.start("bench", "speed", "--steps", 100000, self.recipe(),
                             env={"TMPDIR": str(temporary)})
        self.assertIn("as it is", process.stderr.readline())
        self.assertEqual(1, len(list(temporary.glob("scaletrain-bench-*"))))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(75, process.returncode, err)
        self.assertEqual("", out)
        self.assertIn("bench: was stopped by SIGTERM", err)
        self.assertEqual([], list(temporary.glob("scaletrain-bench-*")))

    def test_what_cannot_run_is_refused_once(self):
        recipe = self.recipe(steps=None)
        done = self.run_scaletrain("bench", "memory", recipe, expect=2)
        self.assertIn("epochs", done.stderr)


if __name__ == "__main__":
    unittest.main()
