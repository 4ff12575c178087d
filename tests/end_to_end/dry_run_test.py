"""scaletrain launch --dry-run: planted mistakes are found, and nothing is started or written."""

import json
import unittest

from end_to_end import support

VIT = {"name": "vit_tiny", "num_classes": 10, "patch_size": 4, "dim": 64, "depth": 4, "heads": 4}
# name: (changes of the recipe, flags, exit code, text of the message)
MISTAKES = {
    "misspelled key": ({"optimiser": {}}, [], 2, "optimiser"),
    "misspelled value": ({"precision": "bf61"}, [], 2, "/precision"),
    "negative rate": ({"optimizer": {"name": "sgd", "lr": -1}}, [], 2, "/optimizer/lr"),
    "unknown model": ({"model": {"name": "resnet19", "num_classes": 10}}, [], 2, "resnet19"),
    "unknown flag": ({}, ["--nprocs", "2"], 2, "--nprocs"),
    "global batch": ({"batch": {"per_device": 16, "global": 40}}, [], 2, "/batch/global"),
    "ranks of a shard": ({"parallel": {"shard": 3}}, ["--nproc", "2"], 2, "shard"),
    "ranks of a pipeline": ({"parallel": {"pipeline": 3}}, ["--nproc", "2"], 2, "pipeline"),
    "heads of tensor ranks": ({"model": VIT, "parallel": {"tensor": 3}}, ["--nproc", "3"], 2, "heads"),
    "stages without units": ({"model": {**VIT, "depth": 2}, "parallel": {"pipeline": 8}},
                             ["--nproc", "8", "--set", "batch.accumulate=8"], 2, "pipeline"),
    "lanes": ({}, ["--nproc", "2", "--set", "data.order=streamed", "--set", "data.lanes=3"], 2, "lanes"),
    "image size of patches": ({"model": {**VIT, "patch_size": 5}}, [], 2, "patch_size"),
    "missing shard": ({}, ["--set", "data.val.shards=missing.tar"], 65, "missing.tar"),
    "missing folder": ({"data": {"train": {"folder": "missing"}, "image_size": 16}}, [], 65, "missing"),
    "shard of other bytes": ({"data": {"train": {"tokens": "short.bin"}}, "model": {
        "name": "gpt2", "positions": 8, "dim": 8, "depth": 1, "heads": 1, "vocab_size": 8}}, [], 65, "short.bin"),
    "epoch without a step": ({"batch": {"per_device": 4096}}, [], 2, "samples"),
    "pattern without a parameter": ({"model": {"name": "mlp", "num_classes": 10, "freeze": ["no_such.*"]}}, [], 2,
                                    "no_such"),
    "weights that are not there": ({"model": {"name": "mlp", "num_classes": 10, "weights": "missing.safetensors"}},
                                   [], 65, "missing.safetensors"),
    "checkpoint that is not there": ({}, ["--resume", "missing"], 65, "missing"),
    "worker that is no program": ({}, ["--worker", "missing-worker"], 2, "missing-worker"),
    "unknown allowed key": ({}, ["--allow", "no_such_key"], 2, "no_such_key"),
}
LAYOUTS = {
    "data parallel": {"batch": {"per_device": 2}},
    "sharded": {"batch": {"per_device": 2}, "parallel": {"shard": 64}},
    "tensor and pipeline": {"batch": {"per_device": 2, "accumulate": 4}, "parallel": {"tensor": 4, "pipeline": 4}},
}


class DryRunTest(support.RunTestCase):
    def dry_run(self, recipe, *flags, expect=0):
        return self.run_scaletrain("launch", "--dry-run", *flags, recipe, expect=expect)

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))

    def test_each_planted_mistake_is_found(self):
        self.assertGreaterEqual(len(MISTAKES), 20)
        (self.folder / "short.bin").write_bytes(bytes(3))
        for name, (changes, flags, code, text) in MISTAKES.items():
            with self.subTest(name):
                recipe = self.recipe(**changes)
                done = self.dry_run(recipe, *flags, expect=code)
                self.assertIn(text, done.stderr)
                self.assertEqual("", done.stdout)
                self.assertFalse((self.folder / "recipe").exists())

    def test_the_outline_has_steps_rates_intervals_and_sizes(self):
        recipe = self.recipe(schedule={"warmup": {"steps": 5}, "decay": "linear"},
                             validate={"every": {"steps": 6}}, checkpoint={"every": {"steps": 10}})
        outline = json.loads(self.dry_run(recipe, "--json", "--nproc", 2).stdout)
        self.assertEqual([2, 1, 32, 20], [outline[key] for key in ("ranks", "nodes", "global_batch", "steps")])
        # 1,400 samples in batches of 32.
        self.assertEqual(43, outline["steps_per_epoch"])
        self.assertEqual([1, 5, 11, 20], [one["step"] for one in outline["rates"]])
        rates = [one["lr"] for one in outline["rates"]]
        self.assertAlmostEqual(0.05 / 5, rates[0])
        self.assertAlmostEqual(0.05, rates[1])
        self.assertEqual(sorted(rates[1:], reverse=True), rates[1:])
        self.assertEqual([4, 2, 2], [outline[key] for key in ("validations", "saves", "checkpoints_kept")])
        # 16 x 16 x 3 inputs, 32 hidden values and 10 classes: weights and momentum, in fp32.
        parameters = 16 * 16 * 3 * 32 + 32 + 32 * 10 + 10
        self.assertAlmostEqual(2 * 4 * parameters, outline["checkpoint_bytes"], delta=64)
        self.assertGreater(outline["free_bytes"], outline["checkpoint_bytes"])
        self.assertEqual([0], [rank["rank"] for rank in outline["memory"]])

    def test_the_rates_of_the_outline_are_those_of_the_run(self):
        recipe = self.recipe(schedule={"warmup": {"steps": 5}, "decay": "cosine"}, log={"every": {"steps": 1}})
        outline = json.loads(self.dry_run(recipe, "--json").stdout)
        self.run_scaletrain("launch", recipe)
        trained = {one["step"]: one["lr"] for one in support.records(self.folder / "recipe", "train")}
        for rate in outline["rates"]:
            self.assertAlmostEqual(trained[rate["step"]], rate["lr"], places=7, msg=rate)

    def test_64_ranks_of_any_layout_need_neither_nodes_nor_an_address(self):
        model = {"name": "vit_tiny", "num_classes": 10, "patch_size": 4, "dim": 64, "depth": 6, "heads": 4}
        for name, changes in LAYOUTS.items():
            with self.subTest(name):
                recipe = self.recipe(model=model, optimizer={"name": "adamw", "lr": 0.001}, **changes)
                text = self.dry_run(recipe, "--nproc", 8, "--nnodes", 8).stdout
                self.assertTrue(text.startswith("ok: recipe: 64 ranks on 8 nodes, global batch "), text)
                self.assertIn("memory of a rank:", text)

    def test_nothing_is_written(self):
        recipe = self.recipe()
        self.dry_run(recipe)
        before = self.files()
        self.dry_run(recipe)
        self.assertEqual(before, self.files())
        self.assertFalse((self.folder / "recipe").exists())

    def test_a_folder_with_checkpoints_is_refused_as_by_a_launch(self):
        recipe = self.recipe()
        self.run_scaletrain("launch", recipe)
        message = self.run_scaletrain("launch", recipe, "--set", "optimizer.lr=0.1", expect=2).stderr
        self.assertEqual(message, self.dry_run(recipe, "--set", "optimizer.lr=0.1", expect=2).stderr)

    def test_flags_that_do_not_fit_are_refused(self):
        done = self.run_scaletrain("launch", "--json", self.recipe(), expect=2)
        self.assertIn("--json: is for --dry-run", done.stderr)
        done = self.run_scaletrain("launch", "--dry-run", "--", "true", expect=2)
        self.assertIn("--dry-run: is for recipes", done.stderr)


if __name__ == "__main__":
    unittest.main()
