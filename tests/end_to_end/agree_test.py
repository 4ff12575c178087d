"""Where ranks agree to stop when they exchange no step: in evaluation, and while they wait."""

import json
import os
import pathlib
import signal
import time
import unittest

from end_to_end import support

WORKER = support.BIN / "scaletrain-worker"


class AgreeTest(support.RunTestCase):
    def worker(self, process, rank):
        for pid in support.pids_with(process.marker):
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if f"RANK={rank}".encode() in variables:
                return pid
        raise AssertionError(f"there is no rank {rank}")

    def phases(self, run):
        try:
            status = json.loads((self.folder / run / "status/0.json").read_text())
        except (OSError, ValueError):
            return []
        return [rank["phase"] for rank in status["ranks"]]

    def test_a_signal_to_one_rank_ends_the_evaluation_of_all_and_a_resume_does_it(self):
        # An evaluation of 200 batches of 50 ms, which is 5 s on two ranks.
        changes = {"steps": 8, "batch": {"per_device": 1}, "validate": {"every": {"steps": 4}},
                   "checkpoint": {"every": {"steps": 100}}}
        alone = self.recipe("alone", **changes)
        self.run_scaletrain("launch", "--nproc", 2, alone)

        path = self.recipe("run", **changes)
        process = self.start("launch", "--nproc", 2, path, env={"SCALETRAIN_FAULT": "slow-data@1"})
        support.wait_until(lambda: "validating" in self.phases("run"), "the validation")
        start = time.monotonic()
        os.kill(self.worker(process, 1), signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(75, process.returncode, err)
        self.assertLess(time.monotonic() - start, 3)
        self.assertEqual(4, support.inspect(self.folder / "run")["step"])
        self.assertEqual([], support.records(self.folder / "run", "eval"))

        self.run_scaletrain("resume", self.folder / "run", "--nproc", 2)
        for event, fields in (("eval", ("split", "step", "loss", "top1", "count")),
                              ("train", ("step", "loss", "order_digest"))):
            told = [[[record.get(field) for field in fields]
                     for record in support.records(self.folder / run, event)]
                    for run in ("alone", "run")]
            self.assertEqual(told[0], told[1])
        self.assertEqual(support.inspect(self.folder / "alone/checkpoints/best")["step"],
                         support.inspect(self.folder / "run/checkpoints/best")["step"])

    def check_stop_while_joining(self, absent, number, status):
        """A signal is answered at once while a rank waits for rank `absent`, which never comes."""
        script = self.folder / "worker"
        script.write_text(
            f"#!/bin/sh\n[ $RANK = {absent} ] && exec sleep 1000\nexec {WORKER} \"$@\"\n")
        script.chmod(0o755)
        run = f"without-{absent}-{status}"
        process = self.start("launch", "--nproc", 2, "--grace", "300s", "--worker", script,
                             self.recipe(run))
        support.wait_until(lambda: "joining" in self.phases(run), "the other rank to wait")
        start = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        self.assertEqual(status, process.returncode, err)
        self.assertLess(time.monotonic() - start, 5)
        self.assertIn("before training began", (
            self.folder / run / f"logs/attempt_0/{1 - absent}/stderr.log").read_text())
        self.assert_nothing_left(process)

    def test_a_job_that_waits_for_a_rank_stops_at_once(self):
        self.check_stop_while_joining(1, signal.SIGTERM, 75)

    def test_a_job_whose_store_does_not_answer_yet_stops_at_once(self):
        self.check_stop_while_joining(0, signal.SIGTERM, 75)
        self.check_stop_while_joining(0, signal.SIGINT, 130)


if __name__ == "__main__":
    unittest.main()
