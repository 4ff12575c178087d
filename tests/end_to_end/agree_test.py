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

    def test_a_job_that_waits_for_a_rank_stops_at_once(self):
        script = self.folder / "worker"
        script.write_text(f"#!/bin/sh\n[ $RANK = 1 ] && exec sleep 1000\nexec {WORKER} \"$@\"\n")
        script.chmod(0o755)
        process = self.start("launch", "--nproc", 2, "--grace", "300s", "--worker", script,
                             self.recipe())
        support.wait_until(lambda: "joining" in self.phases("recipe"), "rank 0 to wait")
        start = time.monotonic()
        process.terminate()
        _, err = process.communicate(timeout=60)
        self.assertEqual(75, process.returncode, err)
        self.assertLess(time.monotonic() - start, 5)
        self.assert_nothing_left(process)


if __name__ == "__main__":
    unittest.main()
