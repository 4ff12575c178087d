"""scaletrain status RUN: how a run is, from the files in its folder."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S, SCALETRAIN

RUNS = "touch \"$TEST_FOLDER/ready$RANK\"; while :; do sleep 0.05; done\n"


class Status(RecipeTestCase):
    def status(self, *flags, run=None, expect=0):
        done = subprocess.run([SCALETRAIN, "status", run or self.run_folder, *flags], text=True,
                              capture_output=True, timeout=LIMIT_S, env=self.environment())
        self.assertEqual(expect, done.returncode, done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def fields(self, *names, run=None):
        status = json.loads(self.status("--json", run=run))
        return tuple(status[name] for name in names)

    def running(self, *flags, body=RUNS):
        self.script(body)
        process = self.start("launch", "--worker", self.worker, "--nproc", 2, *flags, self.recipe())
        self.wait_for_files("ready0", "ready1")
        self.wait_for(lambda: list(self.run_folder.glob("status/0.json")), "its status")
        return process

    def metrics(self, *records):
        lines = [json.dumps({"event": "train", "attempt": 0, "epoch": 1, "loss": 0.5,
                             "samples_per_s": 100.0, **record}) for record in records]
        (self.run_folder / "metrics.jsonl").write_text("torn\n" + "\n".join(lines) + "\n{\"eve")

    def test_a_running_one_shows_its_ranks_and_hosts(self):
        process = self.running()
        state, attempt, restart, hosts, ranks = self.fields("state", "attempt", "restart", "hosts",
                                                            "ranks")
        self.assertEqual(("running", 0, 0), (state, attempt, restart))
        self.assertEqual([(socket.gethostname(), [0, 1])],
                         [(host["host"], host["ranks"]) for host in hosts])
        self.assertEqual([(0, "starting", 0), (1, "starting", 0)],
                         [(rank["rank"], rank["phase"], rank["step"]) for rank in ranks])
        for rank in ranks:
            os.kill(rank["pid"], 0)
        text = self.status()
        self.assertTrue(text.startswith("test: running\n"), text)
        self.assertIn(f"  hosts       {socket.gethostname()} (ranks 0 to 1)\n", text)
        self.assertRegex(text, r"  rank 1      starting in step 0, \d+\.\d s since its last heartbeat")
        process.terminate()
        process.wait(LIMIT_S)
        self.assertEqual(("stopped", None), self.fields("state", "why"))
        self.assertTrue(self.status().startswith("test: stopped\n"))

    def test_the_recent_losses_are_a_sparkline_and_one_that_is_not_finite_is_named(self):
        self.script()
        self.launch(self.recipe())
        self.metrics(*({"step": step, "loss": loss, "time": 1000.0 + step}
                       for step, loss in enumerate((4.0, 2.0, 1.0, None, 0.5), 1)))
        self.assertEqual(([4.0, 2.0, 1.0, 0.5],), self.fields("losses"))
        self.assertRegex(self.status(), r"(?m)^  loss        \u2588.{2}\u2581  4\.0000 to 0\.5000$")
        self.metrics({"step": 1, "loss": None, "time": 1000.0, "tokens_per_s": 2048.0})
        text = self.status()
        self.assertIn("  loss        is not a finite number\n", text)
        self.assertIn("  speed       2048.0 tokens/s\n", text)

    def test_a_launcher_that_was_killed_leaves_a_dead_run(self):
        process = self.running()
        process.kill()
        process.wait(LIMIT_S)
        self.assertEqual(("dead",), self.fields("state"))
        self.assertIn(f"  why         the launcher, pid {process.pid} on host "
                      f"{socket.gethostname()}, has gone without a word\n", self.status())

    def test_a_lease_of_another_host_is_judged_by_its_age(self):
        self.script()
        self.launch(self.recipe())
        lease = self.run_folder / "lease.json"
        lease.write_text(json.dumps({"host": "elsewhere", "boot_id": "x", "pid": 1, "started": 1,
                                     "attempt": 0, "beat": 3}))
        self.assertEqual(("running",), self.fields("state"))
        old = time.time() - 100
        os.utime(lease, (old, old))
        self.assertEqual(("dead",), self.fields("state"))

    def test_a_failed_one_says_why(self):
        self.script("[ $RANK = 1 ] && kill -KILL $$; exec sleep 1000\n")
        self.launch("--nproc", 2, self.recipe(), expect=137)
        self.assertEqual(("failed", f"rank 1 failed first: killed by SIGKILL (host "
                          f"{socket.gethostname()})"), self.fields("state", "why"))
        self.assertIn("  why         rank 1 failed first: killed by SIGKILL", self.status())

    def test_a_finished_one_says_how_it_ended(self):
        self.script()
        self.launch(self.recipe())
        (self.run_folder / "finished.json").write_text(
            '{"step": 10, "epoch": 2, "test_top1": 0.5}')
        self.assertEqual(("finished", "step 10, epoch 2, test top-1 50.00 %"),
                         self.fields("state", "why"))

    def test_restarts_are_counted(self):
        self.running("--max-restarts", 1, body="[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 74\n" +
                     RUNS)
        self.wait_for(lambda: self.fields("attempt", "restart") == (1, 1), "the restart")
        self.assertIn("  attempt     1, restart 1\n", self.status())

    def test_progress_comes_from_the_metrics_of_the_last_attempt(self):
        self.running()
        now = time.time()
        # The clock was set before step 50 and after step 51.
        self.metrics({"step": 90, "time": now - 1000}, {"attempt": 1, "step": 49, "time": now - 3700},
                     {"attempt": 1, "step": 50, "time": now - 20},
                     {"attempt": 1, "step": 51, "time": now - 19},
                     {"attempt": 1, "step": 52, "time": now - 9000},
                     {"attempt": 1, "step": 60, "time": now - 8992, "loss": 0.25})
        status = self.run_folder / "status/0.json"

        def told():
            node = json.loads(status.read_text())
            status.with_suffix(".new.json").write_text(json.dumps({**node, "total_steps": 100}))
            status.with_suffix(".new.json").rename(status)  # a script does not beat
            return self.fields("step", "total_steps", "epoch", "loss", "samples_per_s", "left_s")
        # 40 steps of a second each; the launcher writes its own words every two seconds.
        self.wait_for(lambda: told() == (60, 100, 1, 0.25, 100.0, 40.0), "the time left")

    def test_slurm_status_joins_step_loss_and_time_left_with_the_columns_of_squeue(self):
        self.running()
        stand_ins = self.folder / "stand-ins"
        stand_ins.mkdir()
        squeue = stand_ins / "squeue"
        squeue.write_text("#!/bin/bash\nprintf '%s\\n' 'JOBID   STATE     ' '5       RUNNING   '\n")
        squeue.chmod(0o755)
        (self.run_folder / "slurm.json").write_text('{"job": "5", "log": "log"}')
        now = time.time()
        self.metrics({"step": 50, "time": now - 10}, {"step": 60, "time": now, "loss": 0.25})
        status = self.run_folder / "status/0.json"

        def shown():
            node = json.loads(status.read_text())
            status.with_suffix(".new.json").write_text(json.dumps({**node, "total_steps": 100}))
            status.with_suffix(".new.json").rename(status)  # a script does not beat
            path = f"{stand_ins}:{os.environ['PATH']}"
            return subprocess.run([SCALETRAIN, "slurm", "status", self.run_folder], text=True, check=True,
                                  stdout=subprocess.PIPE, timeout=LIMIT_S,
                                  env=self.environment({"PATH": path})).stdout
        # Both lines are as wide as squeue's widest without its blanks; 40 steps of a second are left.
        columns = (f"{'JOBID   STATE':<15}  {'STEP':<16}{'LOSS':<10}LEFT\n"
                   f"{'5       RUNNING':<15}  {'60/100':<16}{'0.2500':<10}40s\n")
        self.wait_for(lambda: shown() == columns, "the columns of the run")

    def test_the_time_left_of_a_batch_that_grows_is_that_of_its_samples(self):
        self.running()
        path = self.run_folder / "recipe.json"
        recipe = json.loads(path.read_text())
        recipe["batch"] = {"global": 12, "per_device": 4,
                           "ramp": {"start": 4, "increment": 4, "samples": 24}}
        path.write_text(json.dumps(recipe))
        now = time.time()
        # Two steps of 4 samples took 8 seconds; then come 4, 8, 8 and twice 12.
        self.metrics({"step": 0, "time": now - 8}, {"step": 2, "time": now})
        status = self.run_folder / "status/0.json"

        def left():
            node = json.loads(status.read_text())
            status.with_suffix(".new.json").write_text(json.dumps({**node, "total_steps": 7}))
            status.with_suffix(".new.json").rename(status)
            return self.fields("step", "total_steps", "left_s")
        self.wait_for(lambda: left() == (2, 7, 44.0), "the time left")

    def test_the_newest_checkpoint_and_its_age(self):
        self.a_run(3, 7)
        checkpoint, age = self.fields("checkpoint", "checkpoint_age_s")
        self.assertEqual("step-00000007", pathlib.Path(checkpoint).name)
        self.assertLess(age, LIMIT_S)
        self.assertRegex(self.status(), r"  checkpoint  step-00000007, \d+s ago\n")

    def test_watch_ends_with_the_run(self):
        process = self.running()
        watch = subprocess.Popen([SCALETRAIN, "status", "--watch", "--json", self.run_folder],
                                 stdout=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(watch.kill)
        self.assertEqual("running", json.loads(watch.stdout.readline())["state"])
        process.send_signal(signal.SIGTERM)
        out, _ = watch.communicate(timeout=LIMIT_S)
        self.assertEqual("stopped", json.loads(out.splitlines()[-1])["state"])
        self.assertEqual(0, watch.returncode)

    def test_a_folder_that_is_not_a_run_is_refused(self):
        self.assertEqual(f"{self.folder}: holds no run\n  name the output folder of a recipe\n",
                         self.status(run=self.folder, expect=2))

    def test_files_that_are_damaged_are_no_obstacle(self):
        self.script("exit 65\n")
        self.launch(self.recipe(), expect=65)
        for name in ("failure.json", "status/0.json", "metrics.jsonl", "lease.json"):
            path = self.run_folder / name
            path.parent.mkdir(exist_ok=True)  # a worker may end before anybody looks at it
            path.write_text("{\"a\": [\x1b")
        self.assertEqual(("stopped",), self.fields("state"))
        self.assertFalse(re.search("[\x00-\x09\x0b-\x1f]", self.status()))


if __name__ == "__main__":
    unittest.main()
