"""Meshes of several axes train as one process does; a run goes on from any mesh on any other, after a
kill on the same one bit for bit, and ends at once where one of its ranks is lost."""

import json
import os
import signal
import time
import unittest

from end_to_end import support, text_test
from end_to_end.killed_rank_test import rank_of

CONTEXT = text_test.CONTEXT
GPT2 = {**text_test.MODEL, "heads": 4, "depth": 3, "dropout": 0.0}
STEPS = 8
# Ranks and what they make of them: a new mesh is a line.
MESHES = {
    "one": (1, {}),
    "shard x tensor": (4, {"shard": 2, "tensor": 2}),
    "pipeline x tensor": (4, {"pipeline": 2, "tensor": 2, "sequence": True}),
    "pipeline x shard": (4, {"pipeline": 2, "shard": 2}),
    "pipeline x shard x tensor": (8, {"pipeline": 2, "shard": 2, "tensor": 2,
                                      "shard_level": "gradients"}),
}
# Others that are trained on in the long form; checkpoints of theirs are read on all of the above.
MORE = {
    "pipeline": (2, {"pipeline": 2}),
    "shard x sequence": (4, {"shard": 2, "tensor": 2, "sequence": True,
                             "shard_level": "optimizer"}),
    "replica x shard x tensor": (8, {"replica": 2, "shard": 2, "tensor": 2}),
    "replica x pipeline x tensor": (8, {"pipeline": 2, "tensor": 2, "schedule": "zero_bubble",
                                        "balance": "time"}),
    "pipeline x context x tensor": (8, {"pipeline": 2, "context": 2, "tensor": 2,
                                        "schedule": "interleaved"}),
    "zero_bubble x shard": (4, {"pipeline": 2, "shard": 2, "schedule": "zero_bubble"}),
    "pipeline x shard x context": (8, {"pipeline": 2, "shard": 2, "context": 2}),
}
COMBINED = [name for name in MESHES if name != "one"]
# The meshes that the short form resumes a checkpoint of a mesh on.
RESUMED_ON = {"one": ["shard x tensor"], "pipeline x shard x tensor": ["one"]}


def name_of(mesh):
    return mesh.replace(" ", "")


class MeshesTestCase(text_test.TextTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.tokenize()
        self.data["test"] = self.data["val"]  # of which the best checkpoint is tested

    def write(self, name, mesh, steps=STEPS, **changes):
        ranks, parallel = {**MESHES, **MORE}[mesh]
        keys = {"model": GPT2, "optimizer": text_test.ADAMW, "data": self.data, "threads": 1,
                "batch": {"global": 16, "per_device": 4}, "clip": {"norm": 1.0},
                "ema": {"decay": 0.9}, "steps": steps, "validate": {"every": {"steps": STEPS // 2}},
                "checkpoint": {"every": {"steps": STEPS // 2}, "keep_best": 1},
                "parallel": parallel or None}
        return ranks, self.recipe(name, **{**keys, **changes})

    def launch(self, name, mesh, *flags, expect=0, env=None, **changes):
        ranks, path = self.write(name, mesh, **changes)
        return self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect,
                                   env=env).stderr


class MeshesTest(MeshesTestCase):
    def test_a_run_of_any_mesh_is_evaluated_and_resumes_on_another(self):
        meshes = {**MESHES, **MORE} if support.LONG else MESHES
        for mesh in meshes:
            self.launch(name_of(mesh), mesh)
            self.assert_same_course(name_of(mesh), "one")
        names = list(MESHES)
        for mesh in meshes:
            folder = self.folder / name_of(mesh) / "checkpoints/step-00000004"
            self.assertEqual(mesh == "one", (folder / "model.safetensors").exists())
            self.run_scaletrain("checkpoint", "verify", folder)
            if mesh in COMBINED:
                self.check_readers(self.folder / name_of(mesh))
            # train/resume_meshes_test.cpp resumes on each mesh, from each.
            for other in names if support.LONG else RESUMED_ON.get(mesh, []):
                with self.subTest(f"from {mesh} on {other}"):
                    name = f"{name_of(mesh)}-to-{name_of(other)}"
                    self.launch(name, other, "--resume", folder, "--allow", "parallel")
                    self.assert_same_course(name, "one", first=5)

    def check_readers(self, run):
        """`eval` measures what training measured, and `reshard` keeps the weights."""
        seen = next(r for r in support.records(run, "eval")
                    if r["split"] == "ema/val" and r["step"] == STEPS)
        found = json.loads(self.run_scaletrain("eval", run, "--on", "val", "--json").stdout)
        self.assertAlmostEqual(seen["loss"], found["measures"]["loss"], delta=1e-5)
        joined = self.folder / f"{run.name}-joined"
        self.run_scaletrain("checkpoint", "reshard", run, "--output", joined)
        self.assertEqual(*(support.inspect(folder)["model_digest"] for folder in (run, joined)))

    def test_losses_are_scaled_alike_on_each_mesh(self):
        self.launch("one", "one", precision="fp16")
        for mesh in COMBINED if support.LONG else ["pipeline x tensor"]:
            self.launch(name_of(mesh), mesh, precision="fp16")
            self.assert_same_course(name_of(mesh), "one", most=1e-2)


class RareSyncTest(MeshesTestCase):
    """Replicas of several ranks that exchange weights now and then, in place of gradients."""

    # With votes in each step, without which the lines of replicas of one rank would be of one.
    DILOCO = {"sync": {"name": "diloco", "steps": 4, "fragments": 2}, "ema": None,
              "checkpoint": {"every": {"steps": STEPS // 2}, "keep_best": 0},
              "early_stopping": {"patience": 99}}

    def train(self, name, ranks, parallel, per_device, *flags, expect=0, env=None):
        path = self.recipe(name, model=GPT2, optimizer=text_test.ADAMW, data=self.data, threads=1,
                           batch={"global": 16, "per_device": per_device}, clip={"norm": 1.0},
                           steps=STEPS, validate={"every": {"steps": STEPS // 2}},
                           parallel=parallel or None, **self.DILOCO)
        return self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect,
                                   env=env).stderr

    def test_replicas_of_several_ranks_train_and_go_on_as_those_of_one(self):
        self.train("single", 2, {}, 4)
        before = self.folder / "single" / "checkpoints/step-00000004"
        layouts = [("tensor", 4, {"tensor": 2}, 4), ("shard", 4, {"shard": 2}, 2),
                   ("pipeline-shard", 8, {"pipeline": 2, "shard": 2}, 2)]
        for name, ranks, parallel, per_device in layouts if support.LONG else layouts[:1]:
            with self.subTest(name):
                self.train(name, ranks, parallel, per_device)
                self.assert_same_course(name, "single")
                kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2}"}
                self.train(f"{name}-killed", ranks, parallel, per_device, expect=137, env=kill)
                said = self.train(f"{name}-killed", ranks, parallel, per_device, "--resume", "auto")
                self.assertNotIn("not bit for bit", said)
                self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                                   for run in (name, f"{name}-killed")))
                if not support.LONG:  # train/state/rank_rows_test.cpp: "replicas keep their own state"
                    continue
                # With each replica's own state, however its ranks hold the model.
                said = self.train(f"{name}-moved", ranks, parallel, per_device, "--resume", before,
                                  "--allow", "parallel", "--allow", "batch")
                self.assertNotIn("the optimizer state of the first one", said)
                self.assert_same_course(f"{name}-moved", "single", first=5)


class KilledTest(MeshesTestCase):
    def test_a_killed_run_goes_on_bit_for_bit_on_the_same_mesh(self):
        meshes = ["zero_bubble x shard", "shard x tensor", "pipeline x shard", "pipeline x tensor"]
        steps = (STEPS // 2 + 2, STEPS)
        for mesh in meshes if support.LONG else meshes[:1]:
            whole, killed = f"whole-{name_of(mesh)}", f"killed-{name_of(mesh)}"
            self.launch(whole, mesh)
            for step in steps if support.LONG else steps[:1]:
                self.launch(killed, mesh, *(["--resume", "auto"] if step == STEPS else []),
                            expect=137, env={"SCALETRAIN_FAULT": f"kill@{step}"})
            said = self.launch(killed, mesh, "--resume", "auto")
            self.assertNotIn("not bit for bit", said)
            self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                               for run in (whole, killed)))
            last = [{r["step"]: (r["loss"], r["grad_norm"])
                     for r in support.records(self.folder / run, "train")}
                    for run in (whole, killed)]
            self.assertEqual(*last)

    def test_a_lost_rank_ends_the_job_and_is_named(self):
        for number, mesh in enumerate(COMBINED if support.LONG else ["pipeline x tensor"]):
            with self.subTest(mesh):
                run = name_of(mesh)
                ranks, path = self.write(run, mesh, steps=100000, validate=None)
                process = self.start("launch", "--nproc", ranks, path)
                metrics = self.folder / run / "metrics.jsonl"
                support.wait_until(
                    lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= 5, "steps")
                pids = {rank_of(pid): pid for pid in support.pids_with(process.marker)}
                rank = (3 * number + 1) % ranks
                os.kill(pids[rank], signal.SIGKILL)
                killed = time.monotonic()
                _, err = process.communicate(timeout=support.TIMEOUT_S)
                self.assertLess(time.monotonic() - killed, 10)
                self.assertIn(f"rank {rank} failed first: killed by SIGKILL", err)
                self.assertEqual(137, process.returncode, err)
                self.assert_nothing_left(process)


class StatisticsTest(support.RunTestCase):
    def launch(self, name, ranks, *flags, expect=0, env=None, **changes):
        path = self.recipe(name, model={"name": "resnet18", "num_classes": 10}, steps=4, threads=1,
                           batch={"global": 32, "per_device": 8}, validate={"every": {"steps": 2}},
                           optimizer={"name": "sgd", "lr": 0.001},
                           checkpoint={"every": {"steps": 2}}, **changes)
        return self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect,
                                   env=env).stderr

    def test_stages_that_ranks_hold_together_keep_each_ranks_running_statistics(self):
        parallel = {"pipeline": 2, "shard": 2}
        self.launch("copies", 2)
        self.launch("whole", 4, parallel=parallel)
        self.launch("killed", 4, parallel=parallel, expect=137,
                    env={"SCALETRAIN_FAULT": "kill@4"})
        said = self.launch("killed", 4, "--resume", "auto", parallel=parallel)
        self.assertNotIn("not bit for bit", said)
        self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                           for run in ("whole", "killed")))
        # Later on normalising has made much of the last bits of fp32.
        for event in ("train", "eval"):
            a, b = ([r for r in support.records(self.folder / run, event) if r["step"] == 2]
                    for run in ("copies", "whole"))
            self.assertAlmostEqual(1, b[0]["loss"] / a[0]["loss"], delta=1e-4)
            self.assertEqual(a[0].get("order_digest"), b[0].get("order_digest"))


if __name__ == "__main__":
    unittest.main()
