"""`scaletrain slurm RECIPE --submit` under a real Slurm: what disturbs a job does not change its run.

The workers are stopped (SIGSTOP) until Slurm disturbs them, so that no run is done before; their second
step takes a second longer, in which that happens."""

import json
import os
import signal
import subprocess
import unittest
import unittest.mock

from end_to_end import slurm_support
from end_to_end.support import LONG, ROOT, SCALETRAIN, records, wait_until

STEPS = 100
# docs/guide/slurm.md
DOCS = """
scaletrain slurm recipe.json --nodes 2 --time 30 --submit
scaletrain slurm status runs/recipe
scaletrain slurm logs runs/recipe
scaletrain slurm cancel runs/recipe
"""
DOCS_ARRAY = "scaletrain slurm recipe.json --array 0-2 --set seed=%a --set output=runs/seed-%a --submit"
HOSTILE_NAMES = ["it's", "a b", '"', "\\", "\\'", "$(touch canary)", "`touch canary`", "; touch canary",
                 "# x", "é ünï", "-x", "%j", "a=b", "''", "\\\\", "x\\", "!*?~", "{}[]<>|&"]


class SlurmBatch(slurm_support.ClusterTestCase):
    undisturbed = None

    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "recipe"

    def long_recipe(self, name="recipe"):
        return self.recipe(name, steps=STEPS, threads=1, log={"every": {"steps": 5}})

    def in_cluster(self, *words, expect=0):
        """`scaletrain WORDS` in the cluster."""
        done = subprocess.run(
            self.cluster.command(SCALETRAIN, *words), cwd=self.folder, env=self.cluster.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(expect, done.returncode, done.stdout + done.stderr)
        return done

    def scaletrain(self, *words):
        return self.in_cluster(*words).stdout

    def submit(self, *words):
        job = self.scaletrain("slurm", *words, "--submit").strip()
        self.cancel_at_the_end(job)
        return job

    def cancel_at_the_end(self, job):
        self.addCleanup(subprocess.run, self.cluster.command("scancel", "--quiet", job),
                        env=self.cluster.environment, capture_output=True)

    def submit_and_stop_workers(self, *words):
        """A job on two nodes whose workers stand still after some steps."""
        with unittest.mock.patch.dict(self.cluster.environment, SCALETRAIN_FAULT="slow@2"):
            job = self.submit(self.long_recipe(), "--nodes", 2, *words)
        metrics = self.run_folder / "metrics.jsonl"
        wait_until(lambda: metrics.exists() and records(self.run_folder, "train"), "a step")
        self.signal_workers(signal.SIGSTOP)
        return job

    def signal_workers(self, number):
        workers = slurm_support.workers_in(self.folder)
        self.assertEqual(2, len(workers))
        for worker in workers:
            os.kill(worker, number)

    def show(self, job):
        text = self.cluster.run("scontrol", "--oneliner", "show", "job", job)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait_for_state(self, job, *states):
        wait_until(lambda: self.show(job)["JobState"] in states, f"job {job} to be {states}")

    def log(self):
        return self.scaletrain("slurm", "logs", "--lines", 5000, self.run_folder)

    def chain(self, run):
        """Without the step at which a run was stopped, which is told beside every fifth."""
        return [(r["step"], r["loss"], r["order_digest"]) for r in records(run, "train")
                if r["step"] == 1 or r["step"] % 5 == 0]

    def check_completed(self, job):
        """The job is done after another start, and its run is the one of a job left alone."""
        self.wait_for_state(job, "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")
        end = self.show(job)
        self.assertEqual(("COMPLETED", "1"), (end["JobState"], end["Restarts"]), self.log()[-2000:])
        self.assertIn("the run is finished", self.scaletrain("slurm", "status", self.run_folder))
        self.assertEqual(self.left_alone(), self.chain(self.run_folder))

    def left_alone(self):
        """The chain of the run that nothing disturbs, made once for all tests."""
        if self.undisturbed is None:
            self.run_scaletrain("launch", "--nproc", 2, self.long_recipe("undisturbed"))
            type(self).undisturbed = self.chain(self.folder / "undisturbed")
            self.assertEqual(1 + STEPS // 5, len(self.undisturbed))
        return self.undisturbed

    def test_a_preempted_job_goes_on_by_itself(self):
        job = self.submit_and_stop_workers("--sbatch", "exclusive")
        self.cluster.run("sbatch", "--partition=urgent", "--nodes=2", "--exclusive",
                         "--output=/dev/null", "--wrap=true")
        self.check_completed(job)

    def check_signalled(self, job):
        """Both launchers have heard the signal that `sbatch --signal` asks for; the job goes on."""
        wait_until(lambda: self.log().count("SIGUSR2: stopping") == 2, "the signal on both nodes")
        self.signal_workers(signal.SIGCONT)
        self.check_completed(job)

    def test_a_job_that_is_signalled_saves_and_goes_on_by_itself(self):
        job = self.submit_and_stop_workers()
        self.cluster.run("scancel", "--signal=USR2", job)
        self.check_signalled(job)

    @unittest.skipUnless(LONG, "Slurm looks at time limits twice a minute: the long form")
    def test_a_job_near_its_time_limit_saves_and_goes_on_by_itself(self):
        job = self.submit_and_stop_workers("--time", 2, "--save-before", "25s")
        self.check_signalled(job)

    def test_a_job_that_is_requeued_goes_on(self):
        job = self.submit_and_stop_workers()
        self.cluster.run("scontrol", "requeue", job)
        self.check_completed(job)

    def test_a_cancelled_job_has_saved_and_does_not_come_back(self):
        job = self.submit_and_stop_workers()
        self.assertIn("RUNNING", self.scaletrain("slurm", "status", self.run_folder))
        second = self.in_cluster("slurm", self.folder / "recipe.json", "--submit", expect=2)
        self.assertIn(f"job {job} of this run is RUNNING\n", second.stderr)
        self.scaletrain("slurm", "cancel", self.run_folder)
        self.wait_for_state(job, "CANCELLED")
        wait_until(lambda: list((self.run_folder / "checkpoints").glob("step-*")), "a checkpoint")
        wait_until(lambda: not slurm_support.workers_in(self.folder), "the workers to leave")
        self.assertEqual(("CANCELLED", "0"), (self.show(job)["JobState"], self.show(job)["Restarts"]))
        self.assertIn(f"job {job} has ended already",
                      self.in_cluster("slurm", "cancel", self.run_folder).stderr)

    def test_the_tasks_of_an_array_are_runs_of_their_own(self):
        for number in (0, 3):
            self.recipe(f"r{number}", steps=5, seed=number)
        job = self.submit("r%a.json", "--array", "0,3")
        for number in (0, 3):
            run = self.folder / f"r{number}"
            wait_until(lambda: (run / "finished.json").exists(), f"run {number}")
            self.assertEqual(f"{job}_{number}", json.loads((run / "slurm.json").read_text())["job"])
            self.assertIn("no checkpoint yet", self.scaletrain("slurm", "logs", run))
            self.assertIn(f"{job}_{number}", self.scaletrain("slurm", "status", run))

    def shell(self, line):
        environment = {**self.cluster.environment,
                       "PATH": f"{SCALETRAIN.parent}:{os.environ['PATH']}"}
        done = subprocess.run(self.cluster.command("bash", "-euc", line), cwd=self.folder,
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return done.stdout.strip()

    def test_the_commands_of_the_document(self):
        self.recipe(steps=5000, output="runs/recipe")
        submit, status, logs, cancel = DOCS.split("\n")[1:-1]
        job = self.shell(submit)
        self.cancel_at_the_end(job)
        wait_until(lambda: (self.folder / f"slurm-{job}.out").exists(), "the job to start")
        self.assertIn(job, self.shell(status))
        self.shell(logs)
        self.shell(cancel)
        self.wait_for_state(job, "CANCELLED")
        self.recipe(steps=5)
        array = self.shell(DOCS_ARRAY)
        self.cancel_at_the_end(array)
        for number in range(3):
            wait_until(lambda: (self.folder / f"runs/seed-{number}/finished.json").exists(), "a run")
            self.wait_for_state(f"{array}_{number}", "COMPLETED")  # a launcher writes after that file

    def test_the_scripts_in_the_repository(self):
        for name, flags, words in (("launch", "", "--nproc 1"), ("worker", "--ntasks-per-node=2", "")):
            recipe = self.recipe(name, steps=5, device="cpu")
            job = self.shell(f"sbatch --parsable --nodes=2 --gpus-per-node=2 {flags} "
                             f"{ROOT}/scripts/slurm/{name}.sh {recipe} {words}")
            self.cancel_at_the_end(job)
            wait_until(lambda: (self.folder / name / "finished.json").exists(), f"{name}.sh")
            self.wait_for_state(job, "COMPLETED")
            self.assertEqual(2 if name == "launch" else 4, len(list(
                (self.folder / name / "logs/attempt_0").glob("[0-9]*"))))

    def test_sbatch_reads_values_as_they_were_given(self):
        recipe = self.recipe()
        for name in HOSTILE_NAMES:
            with self.subTest(name=name):
                job = self.submit(recipe, "--job-name", name, "--sbatch", "hold",
                                  "--sbatch", f"comment={name}")
                shown = self.cluster.run("squeue", "--noheader", "--jobs", job, "--format=%j\n%k")
                self.assertEqual(f"{name}\n{name}\n", shown)
                (self.run_folder / "slurm.json").unlink()  # of a run whose job waits there is one
        self.assertFalse((self.folder / "canary").exists())


if __name__ == "__main__":
    unittest.main()
