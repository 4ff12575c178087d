"""The ranks of one host exchange through shared memory: the same training, killed and resumed."""

import json
import os
import pathlib
import shutil
import signal
import unittest

from end_to_end import support

RANKS = 3


def state_of(run):
    return json.loads((run / "checkpoints/latest/state.json").read_text())


def rank_of(pid):
    for variable in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if variable.startswith(b"RANK="):
            return int(variable[5:])
    return None  # the launcher


class ExchangeTest(support.RunTestCase):
    def launch(self, name, *flags, expect=0, env=None, steps=12, **changes):
        path = self.recipe(name, steps=steps, checkpoint={"every": {"steps": 4}, "async": False},
                           **changes)
        result = self.run_scaletrain("launch", "--nproc", RANKS, *flags, path, expect=expect,
                                     env=env)
        return self.folder / name, result.stderr

    def losses(self, run):
        return [r["loss"] for r in support.records(run, "train")]

    def test_memory_trains_as_the_network_does_and_is_the_choice_without_a_word(self):
        network, _ = self.launch("network", dist={"cpu": "gloo"})
        memory, _ = self.launch("memory")
        self.assertEqual(["gloo", "shm"], [state_of(run)["exchange"] for run in (network, memory)])
        for theirs, ours in zip(self.losses(network), self.losses(memory)):
            self.assertAlmostEqual(theirs, ours, delta=1e-5 * abs(theirs))

    def test_a_resume_is_bit_for_bit_and_says_so_where_the_exchange_is_another(self):
        alone, _ = self.launch("alone")
        killed, _ = self.launch("killed", env={"SCALETRAIN_FAULT": "kill@10"}, expect=137)
        other = shutil.copytree(killed, self.folder / "other", symlinks=True)
        _, said = self.launch("killed", "--resume", "auto")
        self.assertNotIn("not bit for bit", said)
        self.assertEqual(*(support.inspect(run)["model_digest"] for run in (alone, killed)))

        _, said = self.launch("other", "--resume", "auto", dist={"cpu": "gloo"})
        self.assertIn("the resumed run is not bit for bit equal: exchange over gloo, was shm", said)
        self.assertEqual("gloo", state_of(other)["exchange"])

    def test_a_killed_rank_is_named_in_time_and_leaves_nothing(self):
        def files():
            return set(os.listdir("/dev/shm"))

        before = files()
        process = self.start("launch", "--nproc", RANKS, self.recipe("run", steps=100000))
        metrics = self.folder / "run/metrics.jsonl"
        support.wait_until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") > 3,
                           "the first steps")
        pids = {rank_of(pid): pid for pid in support.pids_with(process.marker)}
        os.kill(pids[1], signal.SIGKILL)
        _, err = process.communicate(timeout=10)
        self.assertIn("rank 1 failed first: killed by SIGKILL", err)
        self.assertEqual(137, process.returncode, err)
        self.assert_nothing_left(process)
        self.assertLessEqual(files(), before)


if __name__ == "__main__":
    unittest.main()
