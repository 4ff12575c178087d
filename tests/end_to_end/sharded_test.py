"""Ranks that hold a model together: the curve of one process, and checkpoints for any layout."""

import json
import unittest

from end_to_end import support

GLOBAL_BATCH = 32
# Ranks and what they make of them; the numbers of one process are those that all have.
LAYOUTS = {
    "one": (1, {}),
    "copies": (2, {}),
    "shard2": (2, {"shard": 2}),
    "shard4": (4, {"shard": 4}),
    "hybrid": (4, {"replica": 2, "shard": 2}),
}


class ShardedTest(support.RunTestCase):
    def write(self, name, layout, steps=8, **changes):
        ranks, parallel = LAYOUTS[layout] if isinstance(layout, str) else layout
        changes = {
            "model": {"name": "vit_tiny", "num_classes": 10, "dim": 48, "depth": 2, "heads": 3,
                      "dropout": 0.1},
            "optimizer": {"name": "adamw", "lr": 0.002, "weight_decay": 0.05},
            "clip": {"norm": 0.5}, "ema": {"decay": 0.9}, "steps": steps,
            "batch": {"global": GLOBAL_BATCH, "per_device": 8},
            "checkpoint": {"every": {"steps": 4}, "async": False},
            "parallel": parallel or None, **changes}
        return ranks, self.recipe(name, **changes)

    def launch(self, name, layout, *flags, expect=0, env=None, **changes):
        ranks, path = self.write(name, layout, **changes)
        return self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect, env=env)

    def losses(self, name):
        return {record["step"]: record["loss"]
                for record in support.records(self.folder / name, "train")}

    def test_every_layout_and_level_has_the_curve_of_one_process(self):
        self.launch("one", "one")
        # The short form trains the layout with both axes.
        for layout in ("shard2", "shard4", "hybrid") if support.LONG else ("hybrid",):
            ranks, parallel = LAYOUTS[layout]
            digests = set()
            for level in ("optimizer", "gradients", "parameters"):
                name = f"{layout}-{level}"
                self.launch(name, (ranks, {**parallel, "shard_level": level}),
                            batch={"global": GLOBAL_BATCH, "per_device": GLOBAL_BATCH // ranks})
                digests.add(support.inspect(self.folder / name)["model_digest"])
            self.assertEqual(1, len(digests), "the levels do not give the same bits")
            if ranks == 4:  # 8 samples a block, as alone: dropout masks are drawn by block
                self.assert_same_course(f"{layout}-parameters", "one")

    def test_a_checkpoint_of_any_layout_is_gone_on_from_in_any_other(self):
        self.launch("reference", "one")
        # train/resume_meshes_test.cpp has all of them in the short form.
        names = list(LAYOUTS) if support.LONG else ["one", "shard4", "hybrid"]
        for layout in names:
            self.launch(layout, layout, steps=4)
        for number, layout in enumerate(names):
            folder = self.folder / layout / "checkpoints/step-00000004"
            is_cut = bool(LAYOUTS[layout][1])
            self.assertEqual(is_cut, not (folder / "model.safetensors").exists())
            if is_cut:
                places = LAYOUTS[layout][1]["shard"]
                self.assertEqual(
                    [f"model-{place:05}-of-{places:05}.safetensors"
                     for place in range(1, places + 1)],
                    sorted(path.name for path in folder.glob("model-*")))
                self.assertTrue(list(folder.glob("ema-*-of-*")))
            # The short form resumes on the next layout only.
            for other in names if support.LONG else [names[(number + 1) % len(names)]]:
                name = f"{layout}-to-{other}"
                with self.subTest(name):
                    flags = ["--allow", "steps", "--allow", "parallel"]
                    self.launch(name, other, "--resume", folder, *flags)
                    self.assert_same_course(name, "reference", first=5)
        state = json.loads(
            (self.folder / "hybrid/checkpoints/step-00000004/state.json").read_text())
        self.assertEqual([1, 2, 2, 1], state["mesh"])

    def test_a_killed_run_goes_on_bit_for_bit_on_the_same_mesh(self):
        # train/state/rank_rows_test.cpp has the level optimizer in the short form.
        levels = [("parameters", 4), ("optimizer", 2)]
        for level, ranks in levels if support.LONG else levels[:1]:
            layout = (ranks, {"shard": 2, "shard_level": level})
            self.launch(f"alone-{level}", layout)
            self.launch(f"killed-{level}", layout, expect=137, env={"SCALETRAIN_FAULT": "kill@7"})
            err = self.launch(f"killed-{level}", layout, "--resume", "auto").stderr
            self.assertNotIn("not bit for bit", err)
            found = [support.inspect(self.folder / f"{kind}-{level}")["model_digest"]
                     for kind in ("alone", "killed")]
            self.assertEqual(found[0], found[1])
        err = self.launch("other", "shard4", "--resume", self.folder / "alone-parameters",
                          "--allow", "parallel", "--allow", "steps", steps=12).stderr
        self.assertIn("mesh shard 4, was replica 2 x shard 2", err)

    def test_offloaded_state_has_the_same_bits(self):
        for level in ("optimizer", "gradients", "parameters") if support.LONG else ("parameters",):
            layout = (2, {"shard": 2, "shard_level": level})
            disk = self.folder / "disk"
            offloads = {"here": None, "host": {"optimizer": True, "activations": True},
                        "disk": {"optimizer": True, "optimizer_folder": str(disk)}}
            if level == "parameters":
                offloads["all"] = {**offloads["host"], **offloads["disk"], "parameters": True}
            digests = set()
            for name, offload in offloads.items():
                self.launch(f"{level}-{name}", layout, offload=offload)
                digests.add(support.inspect(self.folder / f"{level}-{name}")["model_digest"])
            # A checkpoint of each is gone on from with the next one's.
            names = list(offloads)
            for name, other in zip(names, names[1:] + names[:1]):
                self.launch(f"{level}-{name}-on", layout, "--resume",
                            self.folder / f"{level}-{other}/checkpoints/step-00000004",
                            offload=offloads[name])
                digests.add(support.inspect(self.folder / f"{level}-{name}-on")["model_digest"])
            self.assertEqual(1, len(digests), level)
            self.assertEqual([], list(disk.iterdir()))

    def test_other_options_work_with_offloaded_parameters(self):
        host = {"parameters": True, "optimizer": True}
        rows = {
            "owners": {"optimizer": {"name": "muon", "lr": 0.002}, "ema": None},
            "gathered as bf16": {
                "precision": "bf16",
                "parallel": {"shard": 2, "types": {"parameters": "bf16", "reduce": "bf16"}}},
            "frozen, accumulated": {"batch": {"global": GLOBAL_BATCH, "per_device": 4},
                                    "model": {"name": "vit_tiny", "num_classes": 10, "dim": 48,
                                              "depth": 2, "heads": 3, "freeze": "blocks.0.*"}},
            "tensor": {"parallel": {"shard": 2, "tensor": 2}, "clip": {"value": 0.01},
                       "model": {"name": "vit_tiny", "num_classes": 10, "dim": 48, "depth": 2,
                                 "heads": 4}},
        }
        if support.LONG:
            rows.update({
                "bf16": {"precision": "bf16"},
                "pure": {"precision": "bf16_pure"},
                "a pipeline": {"parallel": {"shard": 2, "pipeline": 2}},
                "replicas, a mean": {
                    "parallel": {"shard": 2, "replica": 2}, "ema": None,
                    "swa": {"start": {"steps": 4}, "every": {"steps": 2}}},
            })
        for name, changes in rows.items():
            with self.subTest(name):
                parallel = changes.pop("parallel", {"shard": 2})
                ranks = 2 if set(parallel) <= {"shard", "types"} else 4
                found = []
                for offload in (None, host):
                    run = f"{name.replace(' ', '-').replace(',', '')}-{bool(offload)}"
                    self.launch(run, (ranks, parallel), offload=offload, **changes)
                    found.append((support.inspect(self.folder / run)["model_digest"],
                                  self.losses(run),
                                  [one["loss"] for one in support.records(self.folder / run, "eval")]))
                self.assertEqual(found[0], found[1])

    def test_optimizers_of_whole_tensors_go_on_in_any_layout(self):
        # Muon rounds to bf16 what differs by the order of sums.
        optimizers = [("muon", 1e-3), ("adafactor", 1e-4)]
        for name, error in optimizers if support.LONG else optimizers[:1]:
            changes = {"optimizer": {"name": name, "lr": 0.002}, "ema": None}
            for layout in ("one", "shard4"):
                self.launch(f"{name}-{layout}", layout, **changes)
            self.launch(f"{name}-killed", "shard4", expect=137, env={"SCALETRAIN_FAULT": "kill@7"},
                        **changes)
            self.launch(f"{name}-killed", "shard4", "--resume", "auto", **changes)
            self.assertEqual(support.inspect(self.folder / f"{name}-shard4")["model_digest"],
                             support.inspect(self.folder / f"{name}-killed")["model_digest"])
            expected = self.losses(f"{name}-one")
            moves = [("one", "shard4"), ("shard4", "one"), ("shard4", "hybrid")]
            for layout, other in moves if support.LONG else moves[:2]:
                run = f"{name}-{layout}-to-{other}"
                folder = self.folder / f"{name}-{layout}/checkpoints/step-00000004"
                self.launch(run, other, "--resume", folder, "--allow", "parallel", **changes)
                for step, loss in self.losses(run).items():
                    self.assertAlmostEqual(1, loss / expected[step], delta=error,
                                           msg=f"{run}: step {step}")

    def test_commands_read_sharded_checkpoints(self):
        self.launch("run", "shard4")
        run = self.folder / "run"
        self.run_scaletrain("checkpoint", "verify", run)
        joined = self.folder / "joined"
        self.run_scaletrain("checkpoint", "reshard", run, "--output", joined)
        self.assertEqual(support.inspect(run)["model_digest"],
                         support.inspect(joined)["model_digest"])
        self.run_scaletrain("checkpoint", "export", run, self.folder / "export",
                            "--to", "safetensors")
        seen = support.records(run, "eval")
        seen = next(record for record in seen
                    if record["split"] == "ema/val" and record["step"] == 8)
        for ranks in (1, 2):
            found = json.loads(self.run_scaletrain("eval", run, "--on", "val", "--json", "--nproc",
                                                   ranks).stdout)
            self.assertAlmostEqual(seen["loss"], found["measures"]["loss"], delta=1e-5)

    def test_unsupported_sharding_is_refused_before_the_start(self):
        ranks, path = self.write("run", "shard2")
        err = self.run_scaletrain("launch", "--nproc", 3, path, expect=2).stderr
        self.assertIn("3 ranks are not a multiple of 2 = shard 2\n"
                      "  start 2 or 4 ranks, or change one of these", err)
        ranks, path = self.write("narrow", (2, {"shard": 2, "types": {"parameters": "bf16"}}))
        err = self.run_scaletrain("recipe", "check", path, expect=2).stderr
        self.assertIn("need weights of another dtype", err)
        ranks, path = self.write("whole", (2, {"shard": 2, "shard_level": "gradients"}),
                                 offload={"parameters": True})
        err = self.run_scaletrain("recipe", "check", path, expect=2).stderr
        self.assertIn("shards in host memory are updated there", err)
        self.assertIn("is for sharded parameters", err)
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main()
