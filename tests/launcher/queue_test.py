"""scaletrain queue and sweep: order, places, what a kill leaves; the workers are scripts."""

import csv
import json
import os
import shutil
import signal
import subprocess
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import BIN, LIMIT_S

# Notes its start, waits for its permission to end, and ends as it is told.
WORKER = r"""#!/bin/sh
trap 'exit 75' TERM
name=$(sed -n 's/^  "name": "\(.*\)",$/\1/p' "$3" | head -1)
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/$$/status)
echo "$name ${CUDA_VISIBLE_DEVICES-none} $cpus $WORLD_SIZE" >>"$TEST_FOLDER/started"
while [ -e "$TEST_FOLDER/hold-$name" ]; do sleep 0.02; done
exit "$(cat "$TEST_FOLDER/exit-$name" 2>/dev/null || echo 0)"
"""


class QueueTestCase(RecipeTestCase):
    """A launcher of the test's own with a script beside it as the worker."""

    def setUp(self):
        super().setUp()
        programs = self.folder / "bin"
        programs.mkdir()
        shutil.copy(BIN / "scaletrain", programs / "scaletrain")
        (programs / "scaletrain-worker").write_text(WORKER)
        (programs / "scaletrain-worker").chmod(0o755)
        self.program = str(programs / "scaletrain")

    def recipes(self, *names):
        paths = []
        for name in names:
            path = self.folder / f"{name}.json"
            self.recipe(name=name, output=str(self.folder / "runs" / name)).rename(path)
            paths.append(path)
        return paths

    def hold(self, *names):
        for name in names:
            (self.folder / f"hold-{name}").touch()

    def release(self, name):
        (self.folder / f"hold-{name}").unlink()

    def begin(self, *arguments, env=None):
        process = subprocess.Popen(
            [self.program, *map(str, arguments)], cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=self.environment(env))
        self.addCleanup(process.communicate, timeout=LIMIT_S)
        self.addCleanup(process.kill)
        return process

    def queue(self, *arguments, expect=0, command="queue", env=None):
        process = self.begin(command, *arguments, env=env)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(expect, process.returncode, f"{out}\n{err}")
        self.assert_nothing_left()
        return out, err

    def started(self):
        path = self.folder / "started"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def names(self):
        return [line[0] for line in self.started()]

    def wait_for_start(self, *names):
        self.wait_for(lambda: set(names) <= set(self.names()), names)

    def jobs(self, *arguments):
        out, _ = self.queue("--show", "--table", "json", *arguments)
        return {job["name"]: job for job in json.loads(out)}

    def states(self):
        return {name: job["state"] for name, job in self.jobs().items()}


class Queue(QueueTestCase):
    def test_runs_one_after_another_in_their_order(self):
        out, err = self.queue(*self.recipes("c", "a", "b"), "--nproc", 2)
        self.assertEqual(["c", "c", "a", "a", "b", "b"], self.names())
        self.assertEqual({"2"}, {line[3] for line in self.started()})
        self.assertEqual(["job", "1", "2", "3"], [line.split()[0] for line in out.splitlines()])
        self.assertEqual({"a": "done", "b": "done", "c": "done"}, self.states())
        self.assertEqual(3, err.count(": starts, log "))
        self.queue(*self.recipes("c", "a", "b"), "--nproc", 2)
        self.assertEqual(6, len(self.names()), "what is done is not done again")

    def test_two_side_by_side_share_the_cpus(self):
        self.hold("a", "b")
        process = self.begin("queue", "--jobs", 2, *self.recipes("a", "b", "c"))
        self.wait_for_start("a", "b")
        self.assertEqual({"a": "running", "b": "running", "c": "waiting"}, self.show_states())
        if len(os.sched_getaffinity(0)) > 1:
            self.assertNotEqual(*[line[2] for line in self.started()[:2]])
        self.release("b")
        self.wait_for_start("c")
        self.release("a")
        self.assertEqual(0, process.wait(LIMIT_S))

    def show_states(self):
        """The states while another queue is at work: showing needs no lease."""
        done = subprocess.run([self.program, "queue", "--show", "--table", "json"], check=True,
                              cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_S)
        return {job["name"]: job["state"] for job in json.loads(done.stdout)}

    def test_a_failed_job_does_not_stop_the_others_and_may_be_tried_again(self):
        (self.folder / "exit-a").write_text("65")
        _, err = self.queue(*self.recipes("a", "b"), expect=1)
        self.assertIn("job 1 a: failed after", err)
        self.assertEqual({"a": "failed", "b": "done"}, self.states())
        self.assertEqual(65, self.jobs()["a"]["exit_code"])
        log = (self.folder / "runs/queue/logs/0001-a.log").read_text()
        self.assertIn("rank 0 failed first: exit code 65", log)
        self.queue(expect=1)
        (self.folder / "exit-a").unlink()
        self.queue("--retry")
        self.assertEqual(["a", "b", "a"], self.names())
        self.assertEqual({"a": "done", "b": "done"}, self.states())

    def test_a_queue_that_is_killed_goes_on_where_it_was(self):
        self.hold("b")
        process = self.begin("queue", *self.recipes("a", "b", "c"))
        self.wait_for_start("b")
        process.kill()
        process.wait(LIMIT_S)
        self.assert_nothing_left()
        self.assertEqual({"a": "done", "b": "waiting", "c": "waiting"}, self.states())
        self.release("b")
        _, err = self.queue()
        self.assertEqual(["a", "b", "b", "c"], self.names())
        self.assertIn("job 2 b: continues", err)
        self.assertEqual((1, 2, 1), tuple(self.jobs()[name]["starts"] for name in "abc"))

    def test_sigterm_and_ctrl_c_leave_jobs_that_wait(self):
        for number, status in ((signal.SIGTERM, 75), (signal.SIGINT, 130)):
            self.hold("a")
            process = self.begin("queue", *self.recipes("a", "b"))
            starts = len(self.names())
            self.wait_for(lambda: len(self.names()) > starts, "the start")
            process.send_signal(number)
            out, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual(status, process.returncode, err)
            self.assertIn("stopping 1 job; to continue them: scaletrain queue --folder "
                          f"{self.folder}/runs/queue\n", err)
            self.assert_nothing_left()
            self.assertEqual({"a": "waiting", "b": "waiting"}, self.states())
        self.release("a")
        self.queue()
        self.assertEqual({"a": "done", "b": "done"}, self.states())

    def test_one_process_runs_a_queue(self):
        self.hold("a")
        process = self.begin("queue", *self.recipes("a"))
        self.wait_for_start("a")
        _, err = subprocess.Popen(
            [self.program, "queue"], cwd=self.folder, stderr=subprocess.PIPE, text=True,
            env=self.environment()).communicate(timeout=LIMIT_S)
        self.assertIn(str(process.pid), err)
        self.release("a")
        self.assertEqual(0, process.wait(LIMIT_S))

    def test_mistakes_are_told_before_anything_is_started(self):
        good, = self.recipes("a")
        bad = self.recipe(name="bad", steps=-1)
        _, err = self.queue(good, bad, expect=2)
        self.assertIn("/steps", err)
        _, err = self.queue(good, good, expect=2)
        self.assertIn("each run needs its own folder", err)
        _, err = self.queue(expect=2)
        self.assertIn("holds no jobs", err)
        _, err = self.queue(good, "--devices", "7", expect=2)
        self.assertIn('there is no GPU "7"', err)
        self.assertEqual([], self.names())
        self.assertFalse((self.folder / "runs").exists())


class Devices(QueueTestCase):
    """With a driver's library that shows four GPUs, the last with a MIG instance."""

    def setUp(self):
        super().setUp()
        self.gpus = {"LD_LIBRARY_PATH": str(BIN.parent / "fake_nvml")}
        if not (BIN.parent / "fake_nvml").exists():
            self.skipTest("the library of the tests is not built")

    def devices(self, *arguments, env=None):
        self.queue(*arguments, env={**self.gpus, **(env or {})})
        return {line[0]: line[1] for line in self.started()}

    def test_jobs_get_devices_of_their_own(self):
        self.hold("a", "b")
        process = self.begin("queue", "--nproc", 2, *self.recipes("a", "b"), env=self.gpus)
        self.wait_for_start("a", "b")
        self.assertEqual({"a": "0,1", "b": "2,3"}, {line[0]: line[1] for line in self.started()})
        self.release("a")
        self.release("b")
        self.assertEqual(0, process.wait(LIMIT_S))

    def test_devices_by_uuid_and_mig_name(self):
        self.assertEqual({"a": "GPU-u2"}, self.devices("--devices", "GPU-u2", *self.recipes("a")))
        self.assertEqual("MIG-m0", self.devices("--devices", "MIG-m0", *self.recipes("b"))["b"])
        self.assertEqual("none", self.devices("--devices", "cpu", *self.recipes("c"))["c"])
        self.assertEqual("GPU-u1", self.devices(
            "--jobs", 1, *self.recipes("d"), env={"CUDA_VISIBLE_DEVICES": "GPU-u1,3"})["d"])


class Trouble(QueueTestCase):
    """What goes wrong in the queue's own folder does no harm to the jobs that run."""

    def begin_held(self, *names, jobs):
        self.hold(*names)
        process = self.begin("queue", "--jobs", jobs, *self.recipes(*names))
        self.wait_for_start(*names[:jobs])
        return process

    def test_a_state_that_cannot_be_written_is_a_warning(self):
        process = self.begin_held("a", "b", jobs=2)
        jobs = self.folder / "runs/queue/jobs"
        jobs.rename(jobs.with_name("old"))
        jobs.touch()
        self.release("a")
        while "warning: the state of job 1 was not written" not in (line := process.stderr.readline()):
            self.assertNotEqual("", line)
        jobs.unlink()
        jobs.with_name("old").rename(jobs)
        self.release("b")
        process.communicate(timeout=LIMIT_S)
        self.assertEqual(0, process.returncode)

    def test_jobs_save_before_an_error_ends_the_queue(self):
        process = self.begin_held("a", "b", "c", jobs=2)
        logs = self.folder / "runs/queue/logs"
        logs.rename(logs.with_name("old"))
        logs.touch()
        self.release("a")
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(74, process.returncode)
        self.assertIn("job 2 b: stopped", err)
        self.assertIn("logs/0003-c.log: Not a directory (ENOTDIR)", err)
        self.assertIn("SIGTERM: stopping 1 worker", logs.with_name("old").joinpath(
            "0002-b.log").read_text())
        self.assertEqual(["done", "waiting", "waiting"],
                         [self.jobs()[name]["state"] for name in ("a", "b", "c")])


class Sweep(QueueTestCase):
    def test_every_combination_is_a_run_and_a_row(self):
        recipe, = self.recipes("base")
        axes = ["optimizer.lr=[1e-1,2e-1]", "batch.per_device=[2,4]"]
        out, _ = self.queue(recipe, *axes, "--set", "seed=5", "--table", "csv", command="sweep")
        rows = list(csv.DictReader(out.splitlines()))
        self.assertEqual([("1e-1", "2"), ("1e-1", "4"), ("2e-1", "2"), ("2e-1", "4")],
                         sorted((row["optimizer.lr"], row["batch.per_device"]) for row in rows))
        self.assertEqual({"done"}, {row["state"] for row in rows})
        self.assertEqual(4, len(self.names()))
        for row in rows:
            stored = json.loads((self.folder / "runs/sweep-base" / row["name"] /
                                 "recipe.json").read_text())
            self.assertEqual((float(row["optimizer.lr"]), int(row["batch.per_device"]), 5),
                             (stored["optimizer"]["lr"], stored["batch"]["per_device"],
                              stored["seed"]))
        self.queue(recipe, *axes, "--set", "seed=5", command="sweep")
        self.assertEqual(4, len(self.names()), "a finished sweep only shows its table")

    def stand_in(self, name, script):
        folder = self.folder / "stand-ins"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def test_slurm_gets_a_job_for_every_run_that_it_has_not(self):
        # Numbers jobs from 101 on; what squeue says of job N is in the file of that name.
        self.stand_in("sbatch", 'cd "$TEST_FOLDER"; n=$(($(cat number || echo 100) + 1));'
                                'cp "$2" script$n; echo $n | tee number; echo PENDING >$n')
        env = self.stand_in("squeue", 'cat "$TEST_FOLDER/${3#--jobs=}" ||'
                                      "{ echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1; }")
        recipe, = self.recipes("base")
        words = [recipe, "optimizer.lr=[1e-1,2e-1]"]
        out, _ = self.queue(*words, "--slurm=--nodes 2 --print", command="sweep", env=env)
        self.assertEqual(2, out.count("#SBATCH --nodes=2\n"))

        def submit():
            return self.queue(*words, "--slurm=--nodes 2 --account 'my team'", command="sweep", env=env)

        def states():
            out, _ = self.queue(*words, "--show", "--table", "csv", command="sweep", env=env)
            return {row["job"]: row["state"] for row in csv.DictReader(out.splitlines())}

        self.assertEqual("101\n102\n", submit()[0])
        self.assertIn("#SBATCH --account='my team'\n", (self.folder / "script102").read_text())
        self.assertEqual({"1": "waiting", "2": "waiting"}, states())
        out, err = submit()
        self.assertEqual("", out)
        self.assertEqual(2, err.count("is in Slurm's queue: PENDING"))
        (self.folder / "101").write_text("RUNNING\n")
        (self.folder / "102").unlink()  # it ended, and not by being done
        self.assertEqual({"1": "running", "2": "waiting"}, states())
        self.assertEqual("103\n", submit()[0])
        (self.folder / "101").unlink()
        (self.folder / "runs/sweep-base/lr-1e-1/finished.json").write_text('{"step": 10, "epoch": 2}')
        self.assertEqual({"1": "done", "2": "waiting"}, states())
        self.assertEqual([], self.names())

    def test_a_value_that_is_wrong_starts_nothing(self):
        recipe, = self.recipes("base")
        _, err = self.queue(recipe, "optimizer.lr=[0.1,-1]", command="sweep", expect=2)
        self.assertIn("--set optimizer.lr: -1 is out of range", err)
        _, err = self.queue(recipe, "optimizer.lr=0.1,0.2", command="sweep", expect=2)
        self.assertIn("has values without brackets", err)
        _, err = self.queue(recipe, "optimizer.lr=[", command="sweep", expect=2)
        self.assertIn("is not a JSON list", err)
        self.assertEqual([], self.names())


if __name__ == "__main__":
    unittest.main()
