"""Checkpoints of fine-tuning: what does not change is linked to the one before, and no result depends
on it."""

import json
import shutil
import signal
import unittest

from end_to_end import support


class IncrementalTest(support.RunTestCase):
    def write(self, name, ranks, incremental, **changes):
        """A linear probe of 12 steps that is saved every second one; 0.35 MB of it is frozen."""
        checkpoint = {"every": {"steps": 2}, "keep_last": 3, "keep_best": 0,
                      "writers": "all" if ranks > 1 else "rank_0", "incremental": incremental}
        changes = {"batch": {"global": 12, "per_device": 12 // ranks}, "steps": 12,
                   "model": {"name": "vit_tiny", "num_classes": 10, "depth": 2, "dim": 48,
                             "heads": 3, "patch_size": 4, "linear_probe": True},
                   "optimizer": {"name": "adamw", "lr": 0.01}, "ema": {"decay": 0.9},
                   "checkpoint": checkpoint, **changes}
        return self.recipe(name, **changes)

    def test_a_linear_probe_links_what_is_frozen_and_ends_with_the_same_bits(self):
        for ranks in (1, 3) if support.LONG else (3,):
            digests = {}
            for incremental in (False, True):
                name = f"run-{ranks}-{incremental}"
                self.run_scaletrain("launch", "--nproc", ranks,
                                    self.write(name, ranks, incremental))
                found = support.inspect(self.folder / name)
                digests[incremental] = found["model_digest"], str(found["tensors"])
            self.assertEqual(digests[False], digests[True])
            self.assertEqual({0}, {one["linked"] for one in
                                   support.records(self.folder / f"run-{ranks}-False", "checkpoint")})

            run = self.folder / f"run-{ranks}-True"
            saves = support.records(run, "checkpoint")
            # The second finds out what does not change, from the third on it is linked: the model
            # and the ema but for their heads.
            self.assertEqual([0, 0], [one["linked"] for one in saves[:2]])
            for one in saves[2:]:
                self.assertGreater(one["linked"], 0.9 * one["bytes"])
            for checkpoint in sorted((run / "checkpoints").glob("step-*")):
                self.run_scaletrain("checkpoint", "verify", checkpoint)
                kept = list(checkpoint.glob("*-kept-*.safetensors"))
                self.assertGreaterEqual(len(kept), 2)
                self.assertEqual({3}, {file.stat().st_nlink for file in kept})
            # On the disk they are there once.
            blocks = {(file.stat().st_ino, file.stat().st_size)
                      for file in (run / "checkpoints").glob("step-*/*.safetensors")}
            self.assertLess(sum(size for _, size in blocks), 1.3 * saves[-1]["bytes"])

            # The others may go; what is left is a checkpoint like any other.
            prune = ("checkpoint", "prune", run, "--keep-last", 1, "--json")
            freed = json.loads(self.run_scaletrain(*prune).stdout)
            self.assertEqual(2, len(freed["removed"]))
            self.assertLess(freed["bytes"], 0.2 * saves[-1]["bytes"])  # not what is kept
            self.run_scaletrain("checkpoint", "verify", run)
            whole = self.folder / f"whole-{ranks}"
            self.run_scaletrain("checkpoint", "reshard", run, "--output", whole)
            self.assertEqual(digests[True][0], support.inspect(whole)["model_digest"])

    def test_ranks_that_hold_a_model_together_link_what_is_frozen(self):
        layouts = {
            "shard": (2, {"shard": 2}),
            "pipeline": (2, {"pipeline": 2}),
        }
        if support.LONG:
            layouts |= {
                "tensor": (2, {"tensor": 2}),
                "gradients": (2, {"shard": 2, "shard_level": "gradients"}),
                "replicas": (4, {"shard": 2, "replica": 2}),
                "tensor-shard": (4, {"tensor": 2, "shard": 2}),
                "pipeline-shard": (4, {"pipeline": 2, "shard": 2}),
            }
        for name, (ranks, parallel) in layouts.items():
            with self.subTest(name):
                readers = ranks // parallel.get("pipeline", 1) // parallel.get("tensor", 1)
                changes = {"parallel": parallel,
                           "model": {"name": "vit_tiny", "num_classes": 10, "depth": 2, "dim": 64,
                                     "heads": 4, "patch_size": 4, "linear_probe": True},
                           "batch": {"global": 12, "per_device": 12 // readers // 2}}
                for incremental in (False, True):
                    path = self.write(f"{name}-{incremental}", ranks, incremental, **changes)
                    self.run_scaletrain("launch", "--nproc", ranks, path)
                whole, run = self.folder / f"{name}-False", self.folder / f"{name}-True"
                digest = support.inspect(whole)["model_digest"]
                self.assertEqual(digest, support.inspect(run)["model_digest"])
                saves = support.records(run, "checkpoint")
                self.assertEqual([0, 0], [one["linked"] for one in saves[:2]])
                for one in saves[2:]:
                    self.assertGreater(one["linked"], 0.9 * one["bytes"])
                for checkpoint in sorted((run / "checkpoints").glob("step-*")):
                    self.run_scaletrain("checkpoint", "verify", checkpoint)
                    kept = list(checkpoint.glob("*-kept-*.safetensors"))
                    self.assertGreaterEqual(len(kept), 2)  # of the model and the ema
                    self.assertEqual({3}, {file.stat().st_nlink for file in kept})
                # Another process starts with files of its own, beside those that were linked.
                path = self.write(f"{name}-killed", ranks, True, **changes)
                self.run_scaletrain("launch", "--nproc", ranks, path, expect=137,
                                    env={"SCALETRAIN_FAULT": "kill@9"})
                self.run_scaletrain("launch", "--nproc", ranks, "--resume", "auto", path)
                killed = self.folder / f"{name}-killed"
                self.assertEqual(digest, support.inspect(killed)["model_digest"])
                self.run_scaletrain("checkpoint", "verify", killed)
                # Any other layout goes on from it, one process too.
                joined = self.folder / f"{name}-joined"
                self.run_scaletrain("checkpoint", "reshard", run, "--output", joined)
                self.assertEqual(digest, support.inspect(joined)["model_digest"])
                alone = self.write(f"{name}-alone", 1, True, **{**changes, "parallel": None})
                self.run_scaletrain("launch", "--nproc", 1, "--resume",
                                    sorted((run / "checkpoints").glob("step-*"))[0],
                                    "--allow", "parallel", "--allow", "batch", alone)

    def test_a_run_that_is_stopped_goes_on_from_linked_files_to_the_same_bits(self):
        self.run_scaletrain("launch", "--nproc", 1, self.write("alone", 1, False, steps=60))
        run = self.folder / "stopped"
        path = self.write("stopped", 1, True, steps=60)
        process = self.start("launch", "--nproc", 1, path)
        support.wait_until(lambda: support.newest_saved(run) >= 6, "a checkpoint with links")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(75, process.returncode, err)
        self.run_scaletrain("launch", "--nproc", 1, "--resume", "auto", path)
        self.assertEqual(support.inspect(self.folder / "alone")["model_digest"],
                         support.inspect(run)["model_digest"])

    def test_a_copy_of_a_checkpoint_with_links_stands_alone(self):
        copies = self.folder / "copies"
        path = self.write("run", 1, True)
        command = ("launch", "--nproc", 1, "--set", f"checkpoint.mirror={copies}", path)
        self.run_scaletrain(*command)
        digest = support.inspect(self.folder / "run")["model_digest"]
        shutil.rmtree(self.folder / "run")
        self.run_scaletrain("checkpoint", "verify", copies)
        self.assertEqual(digest, support.inspect(copies)["model_digest"])
        self.assertEqual({1}, {file.stat().st_nlink
                               for file in copies.glob("checkpoints/step-*/*.safetensors")})
        said = self.run_scaletrain(*command, "--resume", "auto", "--allow", "steps", "--set",
                                   "steps=14").stderr
        self.assertIn(f"step-00000012 was copied from {copies}", said)
        self.assertEqual(14, support.inspect(self.folder / "run")["step"])


if __name__ == "__main__":
    unittest.main()
