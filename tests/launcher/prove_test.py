"""scaletrain prove: short runs that must end alike, and what it says where they do not."""

import json
import signal
import unittest

from launcher.launch_support import LaunchTestCase


class Prove(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.run_launcher("data", "synth", "set", "--samples", 64, "--classes", 3, "--size", 32)
        (self.folder / "recipe.json").write_text(json.dumps({
            "name": "shapes", "seed": 3,
            "model": {"name": "vit_tiny", "num_classes": 3, "patch_size": 4, "dim": 32, "depth": 2,
                      "heads": 2},
            "data": {"train": {"shards": "set/train-*.tar", "augment": ["random_crop"]},
                     "val": {"shards": "set/train-*.tar"}, "image_size": 16},
            "batch": {"per_device": 8}, "epochs": 3, "device": "cpu",
            "optimizer": {"name": "adamw", "lr": 0.001},
            "schedule": {"warmup": {"epochs": 1}, "decay": "cosine"},
            "early_stopping": {"patience": 1}, "ema": {"decay": 0.9}, "output": "run"}))

    def prove(self, only, *flags, expect=0, env=None):
        done = self.run_launcher("prove", "recipe.json", "--json", "--steps", 5, "--only", only,
                                 *flags, expect=expect, env=env)
        self.assert_no_run_left()
        found = json.loads(done.stdout)
        self.assertEqual(expect == 0, found["proven"])
        return {proof["name"]: proof for proof in found["proofs"]}

    def assert_no_run_left(self):
        self.assertFalse((self.folder / "run").exists())
        self.assertEqual([], list(self.folder.glob("**/scaletrain-prove-*")))  # TMPDIR is here

    def test_a_killed_run_and_other_loader_threads_end_with_the_same_digest(self):
        proofs = self.prove("same,killed,loader-threads-3", "--nproc", 2)
        self.assertEqual(["same", "killed", "loader-threads-3"], list(proofs))
        for name, proof in proofs.items():
            self.assertEqual("equal", proof["verdict"], (name, proof))
            self.assertEqual(2, proof["second"]["ranks"])
        self.assertEqual(1, len({proof["second"]["digest"] for proof in proofs.values()}))
        kills = proofs["killed"]["second"]["kills"]
        self.assertEqual(2, len(kills))
        self.assertTrue(all(3 <= kill["step"] <= 5 for kill in kills), kills)

    def test_ranks_accumulation_and_layouts_are_within_rounding(self):
        proofs = self.prove("ranks-2,accumulation,tensor-2,pipeline-2-1f1b,shard-2-parameters")
        self.assertEqual(5, len(proofs))
        for name, proof in proofs.items():
            self.assertIn(proof["verdict"], ("equal", "within"), (name, proof))
            self.assertLessEqual(proof["relative"], 1e-6)
            self.assertEqual(1, proof["first"]["ranks"])

    def test_techniques_stay_within_their_tolerances(self):
        proofs = self.prove("recompute,offload-activations,compress-bf16", "--nproc", 2)
        self.assertEqual({"recompute": "equal", "offload-activations": "equal",
                          "compress-bf16": "within"},
                         {name: proof["verdict"] for name, proof in proofs.items()})

    def test_a_step_that_one_rank_skips_is_named(self):
        # Only the second run has a rank 1.
        planted = {"SCALETRAIN_FAULT": "nan@3,1"}
        proof = self.prove("ranks-2", expect=1, env=planted)["ranks-2"]
        self.assertEqual("not_equal", proof["verdict"])
        self.assertEqual((3, "loss", "not finite"), (
            proof["parting"]["step"], proof["parting"]["field"], proof["parting"]["second"]))
        self.assertTrue(proof["parting"]["tensor"])
        done = self.run_launcher("prove", "recipe.json", "--steps", 5, "--only", "ranks-2",
                                 expect=1, env=planted)
        self.assertIn("ranks-2  not equal: step 3, loss ", done.stdout)

    def test_a_run_that_fails_is_no_proof(self):
        proof = self.prove("ranks-2", expect=1, env={"SCALETRAIN_FAULT": "exit@2,1"})["ranks-2"]
        self.assertEqual("failed", proof["verdict"])
        self.assertIn("it ended with ", proof["reason"])

    def test_what_does_not_apply_has_a_reason_and_is_no_failure(self):
        proofs = self.prove("accumulation,context-2,expert-2,ranks-4", "--nproc", 2,
                            "--set", "model.dropout=0.1")
        self.assertEqual({"not_applicable"}, {proof["verdict"] for proof in proofs.values()})
        self.assertEqual("dropout is drawn for each micro-batch", proofs["accumulation"]["reason"])
        self.assertEqual("needs 4 ranks, and there are 2: --nproc", proofs["ranks-4"]["reason"])
        self.assertIn("ranks could divide", proofs["context-2"]["reason"])

    def test_sigterm_ends_the_ranks_and_removes_the_runs(self):
        (self.folder / "place").mkdir()
        process = self.start("prove", "recipe.json", "--steps", 10000, "--only", "same",
                             "--folder", "place")
        metrics = "place/scaletrain-prove-*/run-1/metrics.jsonl"
        self.wait_for(lambda: list(self.folder.glob(metrics)), "the first run to train")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate()
        self.assertEqual(75, process.returncode)
        self.assertIn("prove: was stopped by SIGTERM", err)
        self.assert_nothing_left()
        self.assert_no_run_left()

    def test_what_does_not_fit_is_refused(self):
        for flags, message in (
                (["--only", "everything"], "--only: \"everything\" is not a proof"),
                (["--steps", "3"], "--steps"),
                (["--folder", "nowhere"], "cannot be made")):
            with self.subTest(flags=flags):
                done = self.run_launcher("prove", "recipe.json", *flags, expect=None)
                self.assertIn(done.returncode, (2, 74))
                self.assertIn(message, done.stderr)
                self.assert_no_run_left()


if __name__ == "__main__":
    unittest.main()
