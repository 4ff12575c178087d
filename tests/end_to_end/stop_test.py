"""Asked to stop, a run saves and says so; resumed, it goes on; a rank that fails is named."""

import json
import os
import signal
import time
import unittest

import safetensors.torch

from end_to_end import support


class StopTest(support.RunTestCase):
    def start_long(self, name="run", **changes):
        path = self.recipe(name, steps=5000, checkpoint={"every": {"steps": 4000}},
                           **{"validate": {"every": {"steps": 4000}}, **changes})
        process = self.start("launch", "--nproc", 2, path)
        metrics = self.folder / name / "metrics.jsonl"
        support.wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") > 3,
                           "the first steps")
        return path, process

    def check_stop(self, number, status, to_all=False, run="run"):
        path, process = self.start_long(run)
        # As Slurm does it: to the workers too, and more than once.
        for pid in 2 * support.pids_with(process.marker) if to_all else [process.pid]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, status, err)
        self.assertEqual(1, err.count("stopping 2 workers"), err)
        self.assertEqual(1, len(list((self.folder / run / "checkpoints").glob("step-*"))))
        self.assert_nothing_left(process)
        saved = support.inspect(self.folder / run)
        last = support.records(self.folder / run, "train")[-1]
        self.assertEqual(saved["step"], last["step"])
        self.assertIn("scaletrain resume", err)
        more = self.run_scaletrain("resume", self.folder / run, "--nproc", 2,
                                   "--set", f"steps={saved['step'] + 5}", "--allow", "steps")
        self.assertEqual(support.records(self.folder / run, "train")[-1]["step"],
                         saved["step"] + 5, more.stderr)

    def test_sigterm_saves_and_exits_75(self):
        self.check_stop(signal.SIGTERM, 75)

    def test_sigusr1_or_2_to_everybody_twice_saves_once_and_exits_75(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            self.check_stop(number, 75, to_all=True, run=number.name)

    def test_ctrl_c_saves_and_exits_130(self):
        self.check_stop(signal.SIGINT, 130)

    def test_whatever_ends_a_rank_is_the_cause_and_the_others_are_gone_in_5_s(self):
        for fault, status, text in (("segv", 139, "killed by SIGSEGV"), ("exit", 7, "exit code 7"),
                                    ("kill", 137, "killed by SIGKILL")):
            run = self.folder / fault
            result = self.run_scaletrain(
                "launch", "--nproc", 2, self.recipe(fault, steps=5000), expect=status,
                env={"SCALETRAIN_FAULT": f"{fault}@9,1", "AWS_SECRET_ACCESS_KEY": "hunter2"})
            self.assertLess(time.time() - support.records(run, "train")[-1]["time"], 5)
            self.assertIn(f"rank 1 failed first: {text}", result.stderr)
            self.assertEqual(1, json.loads((run / "failure.json").read_text())["rank"])
            texts = [file.read_bytes() for file in run.rglob("*") if file.is_file()]
            self.assertLess(5, len(texts))
            self.assertFalse([text for text in [*texts, result.stderr.encode()] if b"hunter2" in text])

    def test_an_exception_in_a_rank_is_told_with_its_text(self):
        result = self.run_scaletrain("launch", "--nproc", 2, self.recipe(), expect=1,
                                     env={"SCALETRAIN_FAULT": "throw@5,1"})
        self.assertIn("a fault was asked for", result.stderr)
        self.assertRegex(result.stderr, r"rank 1\b")

    def test_a_killed_rank_is_restarted_from_the_newest_checkpoint(self):
        path = self.recipe(steps=40, checkpoint={"every": {"steps": 5}})
        self.run_scaletrain("launch", "--nproc", 2, "--max-restarts", 1, path, expect=137,
                            env={"SCALETRAIN_FAULT": "kill@30,1"})  # again after the restart
        steps = support.records(self.folder / "recipe", "train")
        self.assertEqual({r["attempt"] for r in steps if r["step"] == 29}, {1})
        self.run_scaletrain("launch", "--nproc", 2, "--resume", "auto", path)
        self.assertEqual(support.records(self.folder / "recipe", "train")[-1]["step"], 40)

    def test_steps_that_are_not_finite_are_left_out_on_all_ranks(self):
        path = self.recipe()
        result = self.run_scaletrain("launch", "--nproc", 2, path,
                                     env={"SCALETRAIN_FAULT": "nan@5,1"})
        self.assertIn("step 5 was left out on all ranks", result.stderr)
        self.assertEqual(support.records(self.folder / "recipe", "train")[-1]["step"], 20)

    def test_a_step_that_is_left_out_leaves_nothing_in_batch_norm(self):
        path = self.recipe(model={"name": "mobilenet_v3_small", "num_classes": 10}, steps=6)
        self.run_scaletrain("launch", "--nproc", 1, path, env={"SCALETRAIN_FAULT": "nan@3,0"})
        model = safetensors.torch.load_file(
            self.folder / "recipe/checkpoints/latest/model.safetensors")
        for name, tensor in model.items():
            self.assertTrue(tensor.isfinite().all(), name)

    def test_divergence_exits_76_and_keeps_the_checkpoint(self):
        path = self.recipe(steps=100, checkpoint={"every": {"steps": 5}})
        result = self.run_scaletrain("launch", "--nproc", 2, "--max-restarts", 3, path, expect=76,
                                     env={"SCALETRAIN_FAULT": "nans@30,1"})
        self.assertIn("step 39: loss or gradients were not finite in 10 steps in a row",
                      result.stderr)
        self.run_scaletrain("checkpoint", "verify", self.folder / "recipe")
        self.assertEqual(support.inspect(self.folder / "recipe")["step"], 35)

    def test_the_workers_die_with_a_killed_launcher(self):
        _, process = self.start_long()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        self.assert_nothing_left(process)


if __name__ == "__main__":
    unittest.main()
