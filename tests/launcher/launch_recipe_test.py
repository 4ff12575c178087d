"""scaletrain launch RECIPE and resume: checks, the run's folder, restarts; the worker is a script."""

import json
import os
import re
import socket
import subprocess
import unittest

from launcher import checkpoint_support
from launcher.launch_support import LIMIT_S, LaunchTestCase

# A worker that notes how it was called and then does what the test asks.
WORKER = """#!/bin/sh
echo "$@" >>"$TEST_FOLDER/called$RANK"
cat "$3" >"$TEST_FOLDER/recipe$RANK"
env >"$TEST_FOLDER/env$RANK"
echo out $RANK; echo err $RANK >&2
"""


class RecipeTestCase(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"
        self.shard = self.folder / "train-000000.tar"
        self.shard.write_bytes(b"\0" * 1024)
        self.worker = self.folder / "worker"

    def recipe(self, **changes):
        recipe = {
            "name": "test", "seed": 1, "model": {"name": "mlp", "num_classes": 10},
            "data": {"train": {"shards": str(self.shard)}, "image_size": 8},
            "batch": {"per_device": 4}, "steps": 10, "optimizer": {"name": "sgd", "lr": 0.1},
            "output": str(self.run_folder), **changes}
        path = self.folder / "recipe.json"
        path.write_text(json.dumps(recipe))
        return path

    def script(self, body=""):
        self.worker.write_text(WORKER + body)
        self.worker.chmod(0o755)

    def environment(self, changes=None):
        return super().environment({"TEST_FOLDER": str(self.folder), **(changes or {})})

    def launch(self, *arguments, command="launch", expect=0):
        return self.run_launcher(command, "--worker", self.worker, *arguments, expect=expect)

    def called(self, rank=0):
        path = self.folder / f"called{rank}"
        return path.read_text().splitlines() if path.exists() else []

    def checkpoint(self, step, run=None):
        """A whole checkpoint with the run's recipe."""
        return checkpoint_support.write_checkpoint(
            run or self.run_folder, checkpoint_support.state_of(step),
            (self.run_folder / "recipe.json").read_text())

    def a_run(self, *steps):
        """A run that was started before and has checkpoints."""
        self.script()
        self.launch(self.recipe())
        (self.folder / "called0").unlink()
        return [self.checkpoint(step) for step in steps]


class Launching(RecipeTestCase):
    def test_workers_get_recipe_variables_and_logs(self):
        self.script()
        self.launch("--nproc", 2, self.recipe())
        for rank in (0, 1):
            (call,) = self.called(rank)
            self.assertRegex(call, r"^train --recipe /proc/self/fd/\d+$")
            self.assertEqual(json.loads((self.run_folder / "recipe.json").read_text()),
                             json.loads((self.folder / f"recipe{rank}").read_text()))
            logs = self.run_folder / "logs/attempt_0" / str(rank)
            self.assertEqual(f"out {rank}\n", (logs / "stdout.log").read_text())
            self.assertEqual(f"err {rank}\n", (logs / "stderr.log").read_text())
            env = dict(line.split("=", 1) for line in
                       (self.folder / f"env{rank}").read_text().splitlines() if "=" in line)
            self.assertEqual(rank == 0, "SCALETRAIN_STORE_FD" in env)
            self.assertEqual(rank == 0, "SCALETRAIN_CONSOLE_FD" in env)
            self.assertIn("SCALETRAIN_LIFELINE_FD", env)
            self.assertEqual("0", env["SCALETRAIN_ATTEMPT"])
            self.assertEqual("False", env["TORCHELASTIC_USE_AGENT_STORE"])
            self.assertEqual(str(max(1, len(os.sched_getaffinity(0)) // 2)), env["OMP_NUM_THREADS"])
        self.assertFalse((self.run_folder / "lease.json").exists())
        self.assertFalse((self.run_folder / "failure.json").exists())

    def test_rank_0_inherits_the_listening_store_and_all_the_lifeline(self):
        self.script("readlink /proc/self/fd/$SCALETRAIN_LIFELINE_FD >>\"$TEST_FOLDER/life\"\n"
                    "[ $RANK = 0 ] && readlink /proc/self/fd/$SCALETRAIN_STORE_FD "
                    ">\"$TEST_FOLDER/store\"; exit 0\n")
        self.launch("--nproc", 2, self.recipe())
        self.assertEqual(1, len(set((self.folder / "life").read_text().splitlines())))
        self.assertTrue((self.folder / "store").read_text().startswith("socket:"))

    def test_set_and_threads(self):
        self.script()
        self.launch("--set", "optimizer.lr=0.5", "--set", "threads=3", self.recipe())
        recipe = json.loads((self.folder / "recipe0").read_text())
        self.assertEqual(0.5, recipe["optimizer"]["lr"])
        self.assertIn("OMP_NUM_THREADS=3\n", (self.folder / "env0").read_text())

    def variable(self, name, rank=0):
        """What the worker was given, None where it was not set."""
        lines = (self.folder / f"env{rank}").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line).get(name)

    def test_threads_that_share_cores_wait_without_turning_unless_the_user_says(self):
        self.script()
        for number, (env, expected) in enumerate((({}, "PASSIVE"),
                                                  ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"))):
            self.run_launcher("launch", "--worker", self.worker, self.recipe(
                threads=1 + os.cpu_count(), output=str(self.folder / f"run{number}")), env=env)
            self.assertEqual(expected, self.variable("OMP_WAIT_POLICY"))

    def test_the_launchers_of_one_machine_know_that_they_share_its_cores(self):
        self.script()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        nodes = [self.start("launch", "--worker", self.worker, "--nnodes", 2, "--node-rank", node,
                            "--master-addr", "127.0.0.1", "--master-port", port, self.recipe())
                 for node in (0, 1)]
        for rank, node in enumerate(nodes):
            _, err = node.communicate(timeout=LIMIT_S)
            self.assertEqual(0, node.returncode, err)
            self.assertEqual("PASSIVE", self.variable("OMP_WAIT_POLICY", rank))

    def test_keys_that_do_nothing_are_warned_about(self):
        self.script()
        done = self.launch("--set", "data.train.shards=https://h/a.tar", "--set",
                           "storage.give_up_after_s=60", "--hang-timeout", "1m",
                           self.recipe(validate={"every": {"steps": 2}}))
        self.assertEqual([
            f"warning: {self.folder}/recipe.json:1: /validate: does nothing: there is neither data.val nor "
            f"data.extra",
            "warning: /storage/give_up_after_s: 60 s have no effect: --hang-timeout ends the run after 60 s "
            "without progress; lower the first or raise the second"],
            done.stderr.splitlines())

    def test_a_missing_shard_starts_nothing(self):
        self.script()
        self.shard.unlink()
        done = self.launch(self.recipe(), expect=65)
        self.assertEqual(f"/data/train/shards: {self.shard}: No such file or directory (ENOENT)\n"
                         "  make the files, or correct the path; paths are relative to the working "
                         "directory\n", done.stderr)
        self.assertEqual([], self.called())
        self.assertFalse(self.run_folder.exists())

    def test_a_flag_for_programs_is_refused(self):
        self.script()
        for flags in (["--role", "x"], ["--rdzv-id", "x"], ["--virtual-local-rank"], ["--tee", "3"],
                      ["--signals-to-handle", "SIGTERM"]):
            done = self.launch(*flags, self.recipe(), expect=2)
            self.assertIn(f"{flags[0]}: is for programs after --", done.stderr)
        self.assertEqual([], self.called())

    def test_an_indivisible_batch_starts_nothing(self):
        self.script()
        done = self.launch("--nproc", 2, self.recipe(batch={"global": 12, "per_device": 4}),
                           expect=2)
        self.assertIn("/batch/global", done.stderr)
        self.assertFalse(self.run_folder.exists())

    def test_an_output_that_cannot_be_made_is_a_storage_error(self):
        self.script()
        done = self.launch(self.recipe(output=str(self.shard / "run")), expect=74)
        self.assertIn(str(self.shard / "run"), done.stderr)
        self.assertEqual([], self.called())

    def test_a_second_job_on_the_folder_is_refused(self):
        self.script("touch \"$TEST_FOLDER/started\"; exec sleep 1000\n")
        first = self.start("launch", "--worker", self.worker, self.recipe())
        self.wait_for_files("started")
        lease = self.run_folder / "lease.json"
        for owner, remove in ((f"the running job with pid {first.pid} on host "
                               f"{socket.gethostname()}", False), ("another running job", True)):
            if remove:
                lease.unlink()
            second = self.start("launch", "--worker", self.worker, self.recipe())
            _, err = second.communicate(timeout=LIMIT_S)
            self.assertEqual(2, second.returncode)
            self.assertEqual(
                f"{self.run_folder}: belongs to {owner}\n  stop that job first, or give this one "
                "another folder: --set output=FOLDER\n", err)
        first.kill()
        first.wait(LIMIT_S)
        self.assert_nothing_left()
        self.script()
        self.launch(self.recipe())  # the lease of the dead is no obstacle

    def test_a_start_removes_what_the_killed_left_half_written(self):
        dead = subprocess.Popen(["true"])
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)  # a zombie from now on
        left = [self.run_folder / f".recipe.json.tmp.{dead.pid}",
                self.run_folder / f"checkpoints/.best.tmp.{dead.pid}",
                self.run_folder / f"checkpoints/step-00000004.removed.tmp.{dead.pid}/model",
                self.run_folder / "checkpoints/step-00000005.tmp.1/model"]
        living = self.run_folder / f".recipe.json.tmp.{os.getpid()}"
        for path in [*left, living]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.script()
        self.launch(self.recipe())
        self.assertEqual([], [path for path in left if path.exists()])
        self.assertEqual([], list((self.run_folder / "checkpoints").iterdir()))
        self.assertTrue(living.exists())
        dead.wait()


class Failing(RecipeTestCase):
    def test_the_workers_code_is_passed_on_and_recorded(self):
        self.script("[ $RANK = 0 ] && exec sleep 1000; echo boom >&2; exit 65\n")
        done = self.launch("--nproc", 2, "--max-restarts", 3, self.recipe(), expect=65)
        log = self.run_folder / "logs/attempt_0/1/stderr.log"
        self.assertEqual(
            "rank 1 failed first: exit code 65 (local rank 1)\n"
            "  the last lines of its standard error:\n    | err 1\n    | boom\n"
            f"  its log: {log}\n  all logs: {log.parents[1]}\n"
            f"  when that is put right, start again with: scaletrain launch {self.folder}/recipe.json"
            " --nproc 2\n",
            re.sub(r"\(host [^,]+, local rank 1, pid \d+\)", "(local rank 1)", done.stderr))
        failure = json.loads((self.run_folder / "failure.json").read_text())
        self.assertEqual((1, 65, None, 0), tuple(
            failure[key] for key in ("rank", "exit_code", "signal", "attempt")))
        self.assertEqual(1, len(self.called()))

    def test_only_some_failures_are_worth_a_restart(self):
        for code, attempts in ((1, 2), (2, 1), (65, 1), (71, 1), (74, 2), (75, 2), (76, 1)):
            self.script(f"exit {code}\n")
            self.launch("--max-restarts", 1, self.recipe(), expect=code)
            self.assertEqual(attempts, len(self.called()), code)
            (self.folder / "called0").unlink()

    def test_a_killed_rank_gives_128_plus_its_signal(self):
        self.script("kill -KILL $$\n")
        done = self.launch(self.recipe(), expect=137)
        self.assertIn("rank 0 failed first: killed by SIGKILL", done.stderr)

    def test_a_restart_continues_from_the_newest_checkpoint(self):
        (old,) = self.a_run(3)
        new = self.folder / "new"
        self.script(f"[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0;"
                    f"mv \"{new}\" \"{old.parent}/step-00000007\"; exit 74\n")
        self.checkpoint(7).rename(new)
        self.launch("--resume", "auto", "--max-restarts", 1, self.recipe())
        self.assertRegex(self.called()[0], rf"--resume {old}$")
        self.assertRegex(self.called()[1], rf"--resume {old.parent}/step-00000007$")
        self.assertEqual({"attempt_0", "attempt_1", "attempt_2"},
                         {entry.name for entry in (self.run_folder / "logs").iterdir()})


class Resuming(RecipeTestCase):
    def test_a_folder_with_checkpoints_is_not_started_over(self):
        self.a_run(3)
        done = self.launch(self.recipe(), expect=2)
        self.assertEqual(
            f"{self.run_folder}: holds checkpoints of an earlier run\n  continue it with --resume "
            "auto, or give this run another folder: --set output=FOLDER\n", done.stderr)
        self.assertEqual([], self.called())

    def test_every_name_of_the_newest_checkpoint_resumes_it(self):
        old, new = self.a_run(3, 7)
        (old.parent / "latest").symlink_to("step-00000003")  # a hint that is one behind
        for path in (self.run_folder, old.parent, old.parent / "latest", new):
            self.launch(path, command="resume")
            self.assertRegex(self.called()[-1], rf"--resume {new}$")
        self.launch("--resume", "auto", self.recipe())
        self.assertRegex(self.called()[-1], rf"--resume {new}$")

    def test_a_damaged_checkpoint_falls_back_unless_it_was_named(self):
        old, new = self.a_run(3, 7)
        (new / "state.json").write_text("[]")
        done = self.launch(self.run_folder, command="resume")
        self.assertRegex(self.called()[-1], rf"--resume {old}$")
        self.assertIn("state.json", done.stderr)
        done = self.launch(new, command="resume", expect=65)
        self.assertIn("state.json", done.stderr)
        self.assertEqual(1, len(self.called()))

    def test_an_older_checkpoint_goes_on_in_another_folder_only(self):
        old, _ = self.a_run(3, 7)
        done = self.launch(old, command="resume", expect=2)
        self.assertEqual(
            f"{old}: is not the newest checkpoint of {self.run_folder}, where the run would continue\n"
            "  two histories would be mixed in that folder: use another one: --set output=FOLDER\n",
            done.stderr)
        self.launch("--set", f"output={self.folder}/branch", old, command="resume")
        self.assertRegex(self.called()[-1], rf"--resume {old}$")
        self.assertTrue((self.folder / "branch/recipe.json").exists())

    def test_auto_starts_at_the_beginning_where_there_is_nothing(self):
        self.script()
        done = self.launch("--resume", "auto", self.recipe())
        self.assertEqual(f"{self.run_folder}: no checkpoint yet, starting from the beginning\n",
                         done.stderr)
        self.assertNotIn("--resume", self.called()[0])
        self.launch(self.run_folder, command="resume")

    def test_a_moved_run_goes_on_where_it_is(self):
        self.a_run(3)
        moved = self.folder / "moved"
        self.run_folder.rename(moved)
        self.launch(moved, command="resume")
        self.assertRegex(self.called()[-1], rf"--resume {moved}/checkpoints/step-00000003$")
        self.assertEqual(str(moved), json.loads((self.folder / "recipe0").read_text())["output"])

    def test_changed_keys_must_be_allowed(self):
        self.a_run(3)
        changes = ("--set", "optimizer.lr=0.2", "--set", "seed=2", "--set", "data.threads=1",
                   "--set", "log.every.steps=3", "--set", "profile.after=0")
        text = (f"{self.run_folder}: the recipe differs from the run that is continued: "
                "optimizer.lr, seed\n  if the change is intended, add --allow optimizer.lr --allow seed\n")
        self.assertEqual(text, self.launch(*changes, self.run_folder, command="resume",
                                           expect=2).stderr)
        self.assertEqual(text, self.launch("--resume", "auto", *changes, self.recipe(),
                                           expect=2).stderr)
        for key, near in (("optimizer.lrr", 'did you mean "optimizer.lr"?'),
                          ("/optimizer/beta3", 'did you mean "optimizer.beta1"?'),
                          ("everything", "scaletrain recipe reference lists all keys")):
            self.assertEqual(f'--allow: "{key}" is not a key of a recipe\n  {near}\n', self.launch(
                *changes, "--allow", key, self.run_folder, command="resume", expect=2).stderr)
        # Of another optimizer every key differs: the optimizer is what to allow.
        self.assertTrue(self.launch("--set", 'optimizer={"name": "adamw", "lr": 0.1}', "--set",
                                    "seed=2", self.run_folder, command="resume", expect=2)
                        .stderr.endswith("add --allow optimizer --allow seed\n"))
        self.launch(*changes, "--allow", "optimizer", "--allow", "seed", self.run_folder,
                    command="resume")
        self.assertEqual(0.2, json.loads((self.folder / "recipe0").read_text())["optimizer"]["lr"])
        # The run's own is replaced by the worker that could load everything; this one did not.
        self.assertEqual(
            0.1, json.loads((self.run_folder / "recipe.json").read_text())["optimizer"]["lr"])

    def test_a_finished_run_says_so(self):
        self.a_run(3)
        (self.run_folder / "finished.json").write_text('{"step": 10, "epoch": 2, "test_top1": 0.5, "test_step": 4}')
        for arguments in (("resume", self.run_folder),
                          ("launch", "--resume", "auto", self.recipe())):
            done = self.launch(*arguments[1:], command=arguments[0])
            self.assertEqual(f"{self.run_folder}: this run is finished: step 10, epoch 2, test "
                             "top-1 50.00 % at step 4\n", done.stderr)
        self.assertEqual([], self.called())
        self.launch("--set", "steps=20", "--allow", "steps", self.run_folder, command="resume")
        self.assertEqual(1, len(self.called()))

    def test_a_path_that_is_nothing_is_an_error(self):
        self.script()
        done = self.launch(self.folder / "none", command="resume", expect=65)
        self.assertEqual(f"{self.folder}/none: does not exist\n  name a run's folder, one of its "
                         "checkpoints, or latest\n", done.stderr)
        done = self.launch(self.folder, command="resume", expect=65)
        self.assertEqual(f"{self.folder}: is neither a run's folder nor a checkpoint\n  name a "
                         "run's folder, one of its checkpoints, or latest\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
