"""A killed rank is named, whichever rank it is and whenever it is killed, on an overloaded machine."""

import contextlib
import multiprocessing
import os
import pathlib
import random
import signal
import unittest

from end_to_end import support

RANKS = 4
KILLS = 200 if support.LONG else 2


def spin():
    while True:
        pass


@contextlib.contextmanager
def load():
    """Three processes for each core that spin until the block ends."""
    spinning = [multiprocessing.Process(target=spin, daemon=True)
                for _ in range(3 * os.cpu_count())]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.join()


def rank_of(pid):
    for variable in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if variable.startswith(b"RANK="):
            return int(variable[5:])
    return None  # the launcher


class KilledRank(support.RunTestCase):
    def test_every_rank_that_is_killed_under_load_is_named(self):
        chooser = random.Random(os.environ.get("SCALETRAIN_SEED", "14"))
        for number in range(KILLS):
            run = f"run{number}"
            process = self.start("launch", "--nproc", RANKS, self.recipe(run, steps=100000))
            metrics = self.folder / run / "metrics.jsonl"
            steps = chooser.randint(1, 40)
            support.wait_until(
                lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= steps, "steps")
            pids = {rank_of(pid): pid for pid in support.pids_with(process.marker)}
            rank = chooser.randrange(RANKS)
            with load():
                os.kill(pids[rank], signal.SIGKILL)
                _, err = process.communicate(timeout=support.TIMEOUT_S)
            self.assertIn(f"rank {rank} failed first: killed by SIGKILL", err, f"kill {number}")
            self.assertEqual(137, process.returncode, err)


if __name__ == "__main__":
    unittest.main()
