"""Ranks that share the experts of a mixture train as one rank does, and their checkpoints are gone on
from in any layout."""

import json
import unittest

from end_to_end import replicas_support, support, text_test

MIXTRAL = {"name": "mixtral", "vocab_size": 257, "positions": text_test.CONTEXT, "dim": 32, "depth": 2,
           "heads": 4, "kv_heads": 2, "hidden": 48, "experts": 4, "capacity_factor": 1.25,
           "router_bias_rate": 0.01}
STEPS = 8
LAYOUTS = {
    "one": (1, None),
    "expert2": (2, {"expert": 2}),
    "expert4": (4, {"expert": 4}),
    "copies": (4, {"expert": 2}),
    "shards": (4, {"expert": 2, "shard": 2}),
    "tensor": (4, {"expert": 2, "tensor": 2}),
    "stages": (4, {"expert": 2, "pipeline": 2}),
    "all": (8, {"expert": 2, "shard": 2, "pipeline": 2, "tensor": 2, "sequence": True}),
}
SHARED = {  # for a mixture without a capacity
    "shared": (4, {"expert": 2, "context": 2}),
}


class ExpertTest(text_test.TextTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.tokenize()

    def launch(self, name, layout, *flags, expect=0, env=None, steps=STEPS, model=MIXTRAL,
               global_batch=8, per_device=2, **changes):
        ranks, parallel = {**LAYOUTS, **SHARED}[layout] if isinstance(layout, str) else layout
        keys = {"model": model, "optimizer": text_test.ADAMW, "data": self.data,
                "batch": {"global": global_batch, "per_device": per_device}, "clip": {"norm": 1.0},
                "ema": {"decay": 0.9}, "steps": steps, "parallel": parallel,
                "validate": {"every": {"steps": STEPS // 2}},
                "checkpoint": {"every": {"steps": STEPS // 2}}}
        path = self.recipe(name, **{**keys, **changes})
        return self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect,
                                   env=env).stderr

    def test_layouts_train_as_one_rank_does_and_go_on_from_each_other(self):
        self.launch("one", "one")
        self.assertIn("dropped_share.1", support.records(self.folder / "one", "train")[0]["model"])
        # The checkpoint of each layout resumes on the next one.
        layouts = list(LAYOUTS) if support.LONG else ["one", "expert2", "all"]
        for layout in layouts[1:]:
            self.launch(layout, layout)
            self.assert_same_course(layout, "one")
        # train/resume_meshes_test.cpp has more pairs, also in the short form.
        pairs = list(zip(layouts, layouts[1:] + layouts[:1]))
        for layout, other in pairs if support.LONG else [("one", "expert2"), ("all", "one")]:
            with self.subTest(f"{layout} to {other}"):
                name = f"{layout}-to-{other}"
                self.launch(name, other, "--resume",
                            self.folder / layout / "checkpoints" / f"step-{STEPS // 2:08}",
                            "--allow", "parallel")
                self.assert_same_course(name, "one", first=STEPS // 2 + 1)

    def test_experts_take_tokens_of_sequences_that_ranks_share(self):
        model = {**MIXTRAL, "capacity_factor": 0.0}
        self.launch("one", "one", model=model)
        self.launch("shared", "shared", model=model)
        self.assert_same_course("shared", "one")
        pairs = (("shared", "one"), ("one", "shared"))
        for layout, other in pairs if support.LONG else pairs[:1]:
            name = f"{layout}-to-{other}"
            self.launch(name, other, "--resume",
                        self.folder / layout / "checkpoints" / f"step-{STEPS // 2:08}",
                        "--allow", "parallel", model=model)
            self.assert_same_course(name, "one", first=STEPS // 2 + 1)

    def test_each_rank_writes_its_experts_and_whoever_reads_finds_all(self):
        self.launch("run", "shards")
        folder = self.folder / "run/checkpoints" / f"step-{STEPS:08}"
        self.assertEqual(["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
                         sorted(path.name for path in folder.glob("model-*")))
        self.assertEqual(2, json.loads((folder / "state.json").read_text())["expert"])
        self.run_scaletrain("checkpoint", "verify", self.folder / "run")
        joined = self.folder / "joined"
        self.run_scaletrain("checkpoint", "reshard", self.folder / "run", "--output", joined)
        self.assertEqual(support.inspect(self.folder / "run")["model_digest"],
                         support.inspect(joined)["model_digest"])
        seen = next(record["loss"] for record in support.records(self.folder / "run", "eval")
                    if record["split"] == "ema/val" and record["step"] == STEPS)
        for ranks in (1, 2):
            found = json.loads(self.run_scaletrain("eval", self.folder / "run", "--json", "--nproc",
                                                   ranks).stdout)["measures"]["loss"]
            self.assertAlmostEqual(seen, found, delta=1e-5 * seen)

    def test_a_killed_run_ends_with_the_bits_of_one_left_alone(self):
        for layout in ("shards", "copies", "tensor", "stages") if support.LONG else ("shards",):
            self.launch(f"whole-{layout}", layout)
            kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2},1"}
            said = self.launch(f"killed-{layout}", layout, expect=137, env=kill)
            self.assertIn("rank 1", said)
            said = self.launch(f"killed-{layout}", layout, "--resume", "auto")
            self.assertNotIn("not bit for bit", said)
            self.assertEqual(*(support.inspect(self.folder / f"{run}-{layout}")["model_digest"]
                               for run in ("whole", "killed")))
        said = self.launch("other", "expert4", "--resume", self.folder / "whole-shards", "--allow",
                           "parallel", "--allow", "steps", steps=STEPS + 2)
        self.assertIn("ranks that share experts 4, was 2", said)

    def test_replicas_that_share_experts_meet_now_and_then(self):
        model = {**MIXTRAL, "capacity_factor": 0.0, "router_aux_loss": 0.0}
        rare = {"model": model, "sync": {"name": "diloco", "steps": 2, "fragments": 2},
                "early_stopping": {"patience": 99}, "ema": None, "global_batch": 16}
        shared = (4, {"expert": 2})
        self.launch("single", (2, None), **rare, per_device=4)
        self.launch("shared", shared, **rare)
        self.assert_same_course("shared", "single")
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2},3"}
        said = self.launch("killed", shared, expect=137, env=kill, **rare)
        self.assertIn("rank 3 failed first", said)
        said = self.launch("killed", shared, "--resume", "auto", **rare)
        self.assertNotIn("not bit for bit", said)
        self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                           for run in ("shared", "killed")))
        if not support.LONG:  # train/own_experts_test.cpp: "replicas keep their own state"
            return
        # With each replica's own state, however its ranks hold the model.
        said = self.launch("moved", (4, {"expert": 2, "shard": 2}), "--resume",
                           self.folder / "single" / "checkpoints" / f"step-{STEPS // 2:08}",
                           "--allow", "parallel", "--allow", "batch", **rare)
        self.assertNotIn("the optimizer state of the first one", said)
        self.assert_same_course("moved", "single", first=STEPS // 2 + 1)

    def test_with_one_of_its_ranks_a_replica_that_shares_experts_is_lost(self):
        # Two replicas of two ranks; what is killed is of replica 1.
        shared = (4, {"expert": 2})
        # With experts, train/apart_async_test.cpp has async replicas in the short form.
        syncs = [{"name": "diloco", "steps": 4}, {"name": "async", "steps": 4, "staleness": 1}]
        for sync in syncs if support.LONG else syncs[:1]:
            with self.subTest(sync["name"]):
                name, rare = sync["name"], {"sync": sync, "ema": None, "global_batch": 16}
                said = self.launch(name, shared, expect=replicas_support.DONE_WITH_FEWER,
                                   env={"SCALETRAIN_FAULT": "kill@7,3"}, **rare)
                self.assertIn("rank 3 is lost, and replica 1 with it (ranks 2, 3), the others go "
                              "on: killed by SIGKILL", said)
                self.assertIn("the job is done with 1 of 2 replicas", said)
                run = self.folder / name
                (lost,) = support.records(run, "lost_replica")
                self.assertEqual((lost["replica"], lost["kept_step"], lost["left"]), (1, 4, 1))
                state = support.state(run)
                self.assertEqual(STEPS, state["step"])
                # Of each 16 samples of a step it had 8: every second 4.
                self.assertEqual([[0, 16 * 4, 16 * STEPS, 8, 4, 4]], state["lost_positions"])
                self.launch(name, shared, "--resume", "auto", "--allow", "steps", steps=STEPS + 4,
                            **rare)
                after = support.state(run)
                self.assertEqual(STEPS + 4, after["step"])
                self.assertEqual(state["lost_positions"], after["lost_positions"])

    def test_unsupported_expert_layouts_are_refused_before_the_start(self):
        for layout, message in (
                ((3, {"expert": 2}), "an expert-parallel size of 2 does not fit 3 data-parallel ranks\n  use "
                                     "one of: 1, 3"),
                ((3, {"expert": 3}), "3 ranks cannot share 4 experts evenly\n"
                                     "  use one of: 1, 2, 4")):
            said = self.launch("refused", layout, expect=2)
            self.assertIn(message, said)
        self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    unittest.main()
