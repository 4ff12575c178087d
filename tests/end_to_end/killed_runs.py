"""Runs that are killed with SIGKILL at random moments and resumed, for the tests of several tasks."""

import os
import random
import signal

from end_to_end import support

KILLS = ["launcher", "rank", "all", "launcher while saving", "all while saving"]

# 50 ms a step: the run does not end before the kill where the machine is busy.
SLOWLY = {"SCALETRAIN_FAULT": "slows@1"}


class KilledRunTestCase(support.RunTestCase):
    def check_killed_run(self, ranks, steps, parts, kills=KILLS):
        """Trains `steps` steps, once left alone and once killed at `kills`: the same bits."""
        changes = {
            **parts,
            "batch": {"per_device": 4},
            "steps": steps,
            "schedule": {"warmup": {"steps": 4}, "decay": "cosine"},
            "checkpoint": {"every": {"steps": 4}, "keep_last": 2},
        }
        flags = ["launch", "--nproc", ranks]
        alone = self.recipe("alone", **changes)
        self.run_scaletrain(*flags, alone)
        killed = self.recipe("killed", **changes)

        seed = random.randrange(1 << 30)
        print(f"kill moments drawn with seed {seed}")
        moments = random.Random(seed)
        for number, kill in enumerate(kills):
            unfinished = self.unfinished()  # of the kill before
            process = self.start(*flags, "--resume", "auto", killed, env=SLOWLY)
            if number == 0:  # so that there is one to go on from
                support.wait_until(lambda: process.poll() is not None or self.durable(),
                                   "the first checkpoint")
            self.wait_for_moment(process, kill, moments.randint(1, 6), unfinished)
            self.kill(process, kill, moments)
            process.communicate(timeout=60)
            self.assert_nothing_left(process)
        self.run_scaletrain(*flags, "--resume", "auto", killed)

        self.assertEqual(support.inspect(self.folder / "alone")["model_digest"],
                         support.inspect(self.folder / "killed")["model_digest"])
        alone, killed = ({name: value for name, value in support.state(self.folder / run).items()
                          if name not in ("trained_s", "seen_s")} for run in ("alone", "killed"))
        self.assertEqual(alone, killed)
        for field in ("loss", "grad_norm", "lr", "order_digest", "samples"):
            self.assertEqual(self.chain("alone", field), self.chain("killed", field), field)
        attempts = {record["attempt"] for record in support.records(self.folder / "killed", "train")}
        self.assertGreater(len(attempts), 1, "no attempt went on from another's checkpoint")

    def chain(self, run, field):
        return [(r["step"], r[field]) for r in support.records(self.folder / run, "train")]

    def unfinished(self):
        """The checkpoints that are being written, or were when a process was killed."""
        return set((self.folder / "killed").glob("checkpoints/*.tmp.*"))

    def durable(self):
        return list((self.folder / "killed").glob("checkpoints/step-" + 8 * "[0-9]"))

    def wait_for_moment(self, process, kill, more, unfinished):
        """`more` lines of metrics after the start, or the middle of a save."""
        run = self.folder / "killed"
        if kill.endswith("saving"):
            support.wait_until(
                lambda: process.poll() is not None or self.unfinished() - unfinished,
                "a checkpoint that is being written")
            return
        before = self.lines(run)
        support.wait_until(lambda: process.poll() is not None or self.lines(run) >= before + more,
                           f"{more} more steps")

    @staticmethod
    def lines(run):
        metrics = run / "metrics.jsonl"
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    def kill(self, process, kill, moments):
        everyone = support.pids_with(process.marker)
        workers = sorted(set(everyone) - {process.pid})
        ranks = [pid for pid in workers if b"scaletrain-worker" in support.command_line(pid)]
        victims = {"launcher": [process.pid], "rank": [moments.choice(ranks or [process.pid])],
                   "all": everyone}[kill.split(" while")[0]]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
