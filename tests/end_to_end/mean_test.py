"""The running mean of the weights: resumed bit for bit with its buffers, measured by every command,
and exported; and a step of SAM, on any number of ranks."""

import json
import unittest

import torch
from safetensors.torch import load_file

from end_to_end import support

STEPS = 8
EMA = {"ema": {"decay": 0.9, "warmup": True}}


class MeanTest(support.RunTestCase):
    def recipe(self, name="run", **changes):
        return super().recipe(name, **{
            "model": {"name": "mobilenet_v3_small", "num_classes": 10},
            "data": {"train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
                     "val": {"shards": str(support.DIGITS / "val-000000.tar")},
                     "image_size": 8, "index_cache": str(self.folder / "index")},
            "batch": {"global": 32, "per_device": 16}, "steps": STEPS,
            "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9},
            "validate": {"every": {"steps": 4}},
            "checkpoint": {"every": {"steps": 4}, "async": False}, **changes})

    def checkpoint(self, run, step=STEPS):
        return self.folder / run / f"checkpoints/step-{step:08}"

    def test_a_resume_has_the_bits_of_the_run_that_was_not_interrupted(self):
        keys = {**EMA, "sam": {"rho": 0.05}, "clip": {"adaptive": 0.1}}
        self.run_scaletrain("launch", "--nproc", 2, self.recipe("whole", **keys))
        recipe = self.recipe("cut", **keys)
        self.run_scaletrain("launch", "--nproc", 2, recipe, env={"SCALETRAIN_FAULT": "kill@6"},
                            expect=137)
        self.run_scaletrain("launch", "--nproc", 2, "--resume", "auto", recipe)
        for name in ("ema", "ema_buffers", "model", "buffers", "optimizer"):
            files = [(self.checkpoint(run) / f"{name}.safetensors").read_bytes()
                     for run in ("whole", "cut")]
            self.assertEqual(files[0], files[1], name)
        mean, model = (load_file(self.checkpoint("whole") / f"{name}.safetensors")
                       for name in ("ema", "model"))
        own = load_file(self.checkpoint("whole") / "ema_buffers.safetensors")
        self.assertFalse(torch.equal(mean["classifier.3.weight"], model["classifier.3.weight"]))
        norm = "features.0.1"
        torch.testing.assert_close(own[f"{norm}.running_mean"].mean(0), mean[f"{norm}.running_mean"])
        self.assertEqual(STEPS, mean[f"{norm}.num_batches_tracked"])  # once a step, with sam too
        self.run_scaletrain("checkpoint", "verify", self.folder / "cut")

    def test_commands_take_the_mean_or_the_model(self):
        self.run_scaletrain("launch", self.recipe(**EMA))
        run = self.folder / "run"
        lines = {r["split"]: r for r in support.records(run, "eval") if r["step"] == STEPS}
        state = json.loads((self.checkpoint("run") / "state.json").read_text())
        self.assertEqual(("ema/top1", STEPS), (state["best_by"], state["ema_updates"]))
        for flags, split, name in (((), "ema/val", "ema"), (("--weights", "ema"), "ema/val", "ema"),
                                   (("--weights", "model"), "val", "model")):
            done = self.run_scaletrain("eval", run, "--json", *flags)
            found = json.loads(done.stdout)
            self.assertEqual(name, found["weights"])
            self.assertEqual(lines[split]["loss"], found["measures"]["loss"])
            out = self.folder / f"export-{split.replace('/', '-')}{len(flags)}"
            self.run_scaletrain("checkpoint", "export", run, out, "--to", "safetensors", *flags)
            exported = load_file(out / "model.safetensors")
            for tensor, value in load_file(self.checkpoint("run") / f"{name}.safetensors").items():
                self.assertTrue(torch.equal(value, exported[tensor]), tensor)
        self.assertNotEqual(lines["ema/val"]["loss"], lines["val"]["loss"])

    def test_commands_take_one_of_several_means_and_the_equal_one(self):
        model = {"name": "mlp", "num_classes": 10, "hidden": 32, "layers": 1}
        for keys, names in (({"ema": {"decay": [0.9, 0.5]}}, ("ema:0.9", "ema:0.5")),
                            ({"swa": {"start": {"steps": 2}, "every": {"steps": 1}}}, ("swa",))):
            name = next(iter(keys))
            self.run_scaletrain("launch", self.recipe(name, model=model, **keys))
            run = self.folder / name
            lines = {r["split"]: r for r in support.records(run, "eval") if r["step"] == STEPS}
            for weights in names:
                taken = "ema" if weights == "ema:0.9" else weights
                found = json.loads(self.run_scaletrain("eval", run, "--json", "--weights",
                                                       weights).stdout)
                self.assertEqual(taken, found["weights"])
                self.assertEqual(lines[f"{taken}/val"]["loss"], found["measures"]["loss"])
                out = self.folder / f"export-{weights.replace(':', '-')}"
                self.run_scaletrain("checkpoint", "export", run, out, "--to", "safetensors",
                                    "--weights", weights)
                file = self.checkpoint(name) / f"{taken.replace(':', '-')}.safetensors"
                exported = load_file(out / "model.safetensors")
                for tensor, value in load_file(file).items():
                    self.assertTrue(torch.equal(value, exported[tensor]), tensor)
            self.assertEqual(len(names) + 1, len({line["loss"] for line in lines.values()}))
            self.run_scaletrain("checkpoint", "verify", run)
        done = self.run_scaletrain("eval", self.folder / "ema", "--weights", "ema:0.7", expect=65)
        self.assertIn("has no ema:0.7 weights\n  use one of: ema:0.9, ema:0.5", done.stderr)
        done = self.run_scaletrain("eval", self.folder / "ema", "--weights", "mean", expect=2)
        self.assertIn("mean is not model, ema, ema:DECAY such as ema:0.999, or swa", done.stderr)

    def test_sam_gives_the_same_on_any_number_of_ranks_and_micro_batches(self):
        # Without BatchNorm, whose statistics are of a rank.
        losses = {}
        for name, ranks, batch in (("one", 1, {"per_device": 32}),
                                   ("two", 2, {"per_device": 16}),
                                   ("four", 2, {"per_device": 8, "accumulate": 2})):
            model = {"name": "mlp", "num_classes": 10, "hidden": 32, "layers": 1}
            recipe = self.recipe(name, model=model, batch=batch, sam={"rho": 0.5})
            self.run_scaletrain("launch", "--nproc", ranks, recipe)
            losses[name] = [r["loss"] for r in support.records(self.folder / name, "train")]
        plain = self.recipe("plain", model=model, batch={"per_device": 32})
        self.run_scaletrain("launch", plain)
        without = [r["loss"] for r in support.records(self.folder / "plain", "train")]
        for name in ("two", "four"):
            for a, b in zip(losses["one"], losses[name]):
                self.assertAlmostEqual(a, b, delta=1e-4 * a)
        self.assertEqual(without[0], losses["one"][0])
        self.assertGreater(abs(without[-1] - losses["one"][-1]), 1e-3 * without[-1])


if __name__ == "__main__":
    unittest.main()
