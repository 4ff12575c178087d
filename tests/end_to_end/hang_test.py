"""A rank that hangs is named in time, with what it did not reach and its stack; a slow one too."""

import json
import os
import pathlib
import signal
import socket
import time
import unittest

from end_to_end import support

TIMEOUT_S = 2
VERDICT_S = TIMEOUT_S + 5  # a promise, also in docs/internals/reliability.md
HOST = socket.gethostname()
WORKER = support.BIN / "scaletrain-worker"


class HangTest(support.RunTestCase):
    def start_run(self, *flags, env=None):
        path = self.recipe(steps=100000, log={"every": {"steps": 1}})
        return self.start("launch", "--nproc", 2, "--hang-timeout", f"{TIMEOUT_S}s", *flags, path,
                          env=env)

    def last_step_time(self):
        """When the run wrote its last line: about when it began to hang."""
        return support.records(self.folder / "recipe", "train")[-1]["time"]

    def check_verdict(self, process, rank, what, since=None):
        """The report and failure.json name `rank`; the result is the report and all stacks."""
        out, err = process.communicate(timeout=120)
        end = time.time()
        self.assertEqual(75, process.returncode, err)
        self.assert_nothing_left(process)
        self.assertRegex(err, rf"(?m)^rank {rank} on host {HOST} {what} \(local rank {rank}, pid \d+\)$")
        failure = json.loads((self.folder / "recipe/failure.json").read_text())
        self.assertEqual((rank, 75), (failure["rank"], failure["exit_code"]))
        self.assertRegex(failure["cause"], what)
        late = end - (since or self.last_step_time())
        print(f"the verdict came {late:.1f} s after the hang")
        self.assertLess(late, VERDICT_S)
        return err, (self.folder / "recipe/logs/attempt_0/hang_0.txt").read_text()

    def worker(self, process, rank):
        for pid in support.pids_with(process.marker):
            if f"RANK={rank}".encode() in pathlib.Path(
                    f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pid
        raise AssertionError(f"there is no rank {rank}")

    def test_a_stopped_rank(self):
        process = self.start_run()
        metrics = self.folder / "recipe/metrics.jsonl"
        support.wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") > 3,
                           "the first steps")
        os.kill(self.worker(process, 1), signal.SIGSTOP)
        report, stacks = self.check_verdict(process, 1, r"(never arrived at|waits in) .+ of step \d+.*")
        self.assertRegex(report, r"rank 1, pid \d+: silent for .*; stopped by a signal \(T\)")
        # It cannot tell its own stack; the rank that waits for it does.
        self.assertRegex(stacks, r"(?s)rank 0, pid .*\n  thread \d+ scaletrain-work\n    #0 ")

    def test_an_endless_loop(self):
        process = self.start_run(env={"SCALETRAIN_FAULT": "spin@7,1", "HF_TOKEN": "hunter2"})
        report, stacks = self.check_verdict(
            process, 1, r"never arrived at all-reduce \d+ of step 7 \(step consensus\)")
        self.assertIn("scaletrain::train::commit_fault", report)
        self.assertIn("scaletrain::train::Trainer::run()", stacks)
        self.assertNotIn("hunter2", report + stacks)

    def test_a_deadlocked_data_thread(self):
        process = self.start_run(env={"SCALETRAIN_FAULT": "stuck-data@9,0"})
        report, stacks = self.check_verdict(
            process, 0, r"never arrived at all-reduce \d+ of step \d+ \(step consensus\)")
        self.assertRegex(report, r"rank 0, pid \d+: silent for .* in data, step \d+, ")
        self.assertIn("pause", stacks)  # the data thread

    def test_a_worker_that_never_joins(self):
        script = self.folder / "worker"
        script.write_text(f"#!/bin/sh\n[ $RANK = 1 ] && exec sleep 1000\nexec {WORKER} \"$@\"\n")
        script.chmod(0o755)
        start = time.time()
        self.check_verdict(self.start_run("--worker", script), 1, "never joined", since=start)

    def test_a_hang_is_restarted_from_the_newest_checkpoint(self):
        path = self.recipe(steps=20, checkpoint={"every": {"steps": 5}})
        # The second attempt goes on from step 5, and hangs at 8 again.
        self.run_scaletrain("launch", "--nproc", 2, "--hang-timeout", f"{TIMEOUT_S}s",
                            "--max-restarts", 1, path, expect=75,
                            env={"SCALETRAIN_FAULT": "spin@8,1"})
        steps = support.records(self.folder / "recipe", "train")
        self.assertEqual({1}, {r["attempt"] for r in steps if r["step"] == 7})
        self.run_scaletrain("launch", "--nproc", 2, "--resume", "auto", path)
        self.assertEqual(20, support.records(self.folder / "recipe", "train")[-1]["step"])

    def test_a_healthy_run_is_left_alone(self):
        # A step of a second, validation and saves; the start of a rank is watched too, and takes two
        # seconds on a busy machine.
        path = self.recipe(steps=30, checkpoint={"every": {"steps": 10}},
                           validate={"every": {"steps": 10}})
        self.run_scaletrain("launch", "--nproc", 2, "--hang-timeout", "6s", path,
                            env={"SCALETRAIN_FAULT": "slow@7,1"})


class StragglerTest(support.RunTestCase):
    def check(self, fault, phase):
        path = self.recipe(steps=60)
        result = self.run_scaletrain("launch", "--nproc", 2, path, env={"SCALETRAIN_FAULT": fault})
        slow = support.records(self.folder / "recipe", "straggler")
        self.assertEqual([(1, phase)], [(record["rank"], record["phase"]) for record in slow])
        self.assertLessEqual(slow[0]["step"], 50)
        self.assertGreater(slow[0]["own_time"], 2 * slow[0]["median_time"])
        self.assertIn(f"rank 1 is steadily slower than the others, by {phase}: ", result.stderr)

    def test_a_rank_that_computes_slowly_is_named_within_50_steps(self):
        self.check("slows@1,1", "compute")

    def test_a_rank_whose_data_comes_slowly_is_named_within_50_steps(self):
        self.check("slow-data@1,1", "data")


if __name__ == "__main__":
    unittest.main()
