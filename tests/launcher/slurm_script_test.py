"""scaletrain slurm without a Slurm: what it prints, what it refuses, and that no shell reads a value."""

import os
import pathlib
import subprocess
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import ROOT

SCRIPT = """#!/bin/bash
# Runs a recipe on the nodes of one job: sbatch FILE RECIPE [flags of scaletrain launch]
#SBATCH --job-name=test
#SBATCH --partition=long
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --time=24:00:00
#SBATCH --output=slurm-%j.out
#SBATCH --signal=USR2@120
#SBATCH --requeue
#SBATCH --open-mode=append

# One launcher on each node. %a in the words above is the number of the array's task.
srun ${SLURM_CPUS_PER_TASK:+"--cpus-per-task=$SLURM_CPUS_PER_TASK"} \\
  scaletrain launch --resume auto "${@//\\%a/${SLURM_ARRAY_TASK_ID:-%a}}"
status=$?

# 75: stopped by a signal or a lost node; 74: by the storage. The next start goes on from the newest
# checkpoint. A run that stops a hundred times needs a person.
if [[ $status == 7[45] && ${SLURM_RESTART_COUNT:-0} -lt 100 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
# Programs that note their words, NUL after each, and end as the test asks.
STAND_IN = """#!/bin/bash
printf '%s\\0' "${0##*/}" "$@" >>"$TEST_FOLDER/called"
exit "${STATUS:-0}"
"""


class ScriptTestCase(RecipeTestCase):
    def slurm(self, *arguments, expect=0, env=None):
        return self.run_launcher("slurm", *arguments, expect=expect, env=env)

    def stand_ins(self, *names):
        folder = self.folder / "stand-ins"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).write_text(STAND_IN)
            (folder / name).chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    def called_with(self):
        path = self.folder / "called"
        words = path.read_bytes().split(b"\0")[:-1] if path.exists() else []
        path.unlink(missing_ok=True)
        return [os.fsdecode(word) for word in words]

    def run_script(self, script, *words, status=0, **variables):
        path = self.folder / "job.sh"
        path.write_bytes(os.fsencode(script))
        environment = {**os.environ, "PATH": self.stand_ins("srun", "scontrol"),
                       "TEST_FOLDER": str(self.folder), "STATUS": str(status),
                       "SLURM_JOB_ID": "12", **variables}
        environment = {key: value for key, value in environment.items() if value is not None}
        return subprocess.run(["bash", path, *words], env=environment, cwd=self.folder,
                              capture_output=True).returncode


class SlurmScript(ScriptTestCase):
    def test_the_script_is_printed(self):
        done = self.slurm(self.recipe(), "--nodes", 4, "--gpus-per-node", 8, "--time", "24:00:00",
                          "--partition", "long")
        self.assertEqual(SCRIPT, done.stdout)
        recipe = self.folder / "recipe.json"
        self.assertEqual(f"submit the script with these words: sbatch SCRIPT {recipe} --grace 90s\n",
                         done.stderr)
        done = self.slurm(recipe, "--print", "--set", "output=it's (a) run")
        self.assertIn(f"SCRIPT {recipe} --set 'output=it'\\''s (a) run' --grace 90s\n", done.stderr)

    def test_the_script_in_the_repository_is_one_of_these(self):
        done = self.slurm(self.recipe(name="train"), "--nodes", 4, "--gpus-per-node", 8,
                          "--time", "24:00:00")
        self.assertEqual((ROOT / "scripts/slurm/launch.sh").read_text(), done.stdout)

    def test_more_of_sbatch_can_be_asked_for(self):
        done = self.slurm(self.recipe(), "--cpus-per-node", 16, "--qos", "q", "--account", "a",
                          "--mem", "4G", "--save-before", "5m", "--array", "1-3%1", "--set",
                          f"output={self.folder}/run-%a", "--job-name", "it's",
                          "--sbatch", "constraint=a100&nvlink", "--sbatch", "exclusive")
        for line in ["--cpus-per-task=16", "--qos=q", "--account=a", "--mem=4G",
                     "--signal=USR2@300", "--array=1-3%1", "--output=slurm-%A_%a.out",
                     r"--job-name='it\'s'", "--constraint='a100&nvlink'", "--exclusive"]:
            self.assertIn(f"#SBATCH {line}\n", done.stdout)

    def test_mistakes_are_told_before_anything_is_submitted(self):
        recipe = self.recipe()
        for words, error in [
            (["--nodes", 0], "--nodes: \"0\" is not allowed"),
            (["--gpus-per-node", "x"], "--gpus-per-node: \"x\" is not allowed"),
            (["--account", "a\nb"], "--account: \"a\\nb\" holds a control character"),
            (["--sbatch", "nodes=3"], "--sbatch: \"nodes\" is set by scaletrain"),
            (["--sbatch", "-x"], "--sbatch: \"-x\" is not allowed"),
            (["--save-before", "0s"], "--save-before: \"0s\" is not allowed"),
            (["--output", "%N.out"], "--output: \"%N\" cannot be found again"),
            (["--array", "0-3"], "--array: task 1 would share the folder"),
            (["--set", "optimiser.lr=1"], "\"optimiser\""),
        ]:
            with self.subTest(words=words):
                done = self.slurm(recipe, *words, expect=2)
                self.assertIn(error, done.stderr)
                self.assertEqual("", done.stdout)
        batch = self.recipe(batch={"global": 12, "per_device": 4})
        done = self.slurm(batch, "--nodes", 5, expect=2)
        self.assertIn("5 ranks", done.stderr)
        self.shard.unlink()
        self.slurm(recipe, expect=65)
        self.assertIn("no recipe is given", self.slurm(expect=2).stderr)
        self.assertFalse(self.run_folder.exists())

    def test_only_what_is_worth_it_is_started_again(self):
        script = self.slurm(self.recipe()).stdout
        for status in (0, 1, 2, 65, 71, 74, 75, 76, 130, 137):
            self.assertEqual(status, self.run_script(script, "r.json", status=status))
            again = ["scontrol", "requeue", "12"] if status in (74, 75) else []
            self.assertEqual(["srun", "scaletrain", "launch", "--resume", "auto", "r.json", *again],
                             self.called_with())
        for count in ("0", "1", "2", "99", "100"):
            self.run_script(script, status=75, SLURM_RESTART_COUNT=count)
            self.assertEqual(count != "100", "scontrol" in self.called_with(), count)

    def test_a_task_of_an_array_gets_its_number_and_every_node_its_cpus(self):
        script = self.slurm(self.recipe()).stdout
        self.run_script(script, "r-%a.json", "--set", "x=%a %a", SLURM_ARRAY_TASK_ID="7",
                        SLURM_CPUS_PER_TASK="16")
        self.assertEqual(["srun", "--cpus-per-task=16", "scaletrain", "launch", "--resume", "auto",
                          "r-7.json", "--set", "x=7 7"], self.called_with())
        self.run_script(script, "r-%a.json")
        self.assertEqual("r-%a.json", self.called_with()[-1])

    def test_sbatch_is_given_the_script_and_the_words_as_they_are(self):
        recipe = self.recipe()
        sbatch = self.folder / "stand-ins" / "sbatch"
        path = self.stand_ins()
        sbatch.write_text("#!/bin/bash\ncat \"$2\" >\"$TEST_FOLDER/script\"\nshift 2\n"
                          "printf '%s\\0' \"$@\" >\"$TEST_FOLDER/called\"\necho '77;cluster'\n")
        sbatch.chmod(0o755)
        odd = f"output={self.folder}/a b'\"$(touch canary)"
        done = self.slurm(recipe, "--submit", "--set", odd, "--nproc", 2, env={"PATH": path})
        self.assertEqual("77\n", done.stdout)
        self.assertEqual([str(recipe), "--nproc", "2", "--set", odd, "--grace", "90s"],
                         self.called_with())
        self.assertIn("#SBATCH --nodes=1\n", (self.folder / "script").read_text())
        record = pathlib.Path(odd.removeprefix("output="), "slurm.json").read_text()
        self.assertIn('"job": "77"', record)
        self.assertIn(f'"log": "{self.folder}/slurm-77.out"', record)
        self.assertFalse((self.folder / "canary").exists())

    def slurm_with(self, state="", error=""):
        """PATH with an sbatch, a scancel, and a squeue that tells `state` or fails with `error`."""
        path = self.stand_ins("sbatch", "scancel")
        squeue = self.folder / "stand-ins" / "squeue"
        squeue.write_text(f"#!/bin/bash\necho '{error}' >&2; echo '{state}'; exit {int(bool(error))}\n")
        squeue.chmod(0o755)
        return {"PATH": path, "TEST_FOLDER": str(self.folder)}

    def job_record(self):
        record = self.run_folder / "slurm.json"
        self.run_folder.mkdir(exist_ok=True)
        record.write_text('{"job": "5", "log": "log"}')
        return record

    def test_a_run_with_a_job_in_the_queue_is_not_submitted_again(self):
        record, recipe = self.job_record(), self.recipe()
        for state in ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUE_HOLD"):
            done = self.slurm(recipe, "--submit", expect=2, env=self.slurm_with(state))
            self.assertEqual(
                f"{self.run_folder}: job 5 of this run is {state}\n  wait for it, or end it first: "
                f"scaletrain slurm cancel {self.run_folder}\n", done.stderr)
        done = self.slurm(recipe, "--submit", expect=2, env=self.slurm_with(error="busy"))
        self.assertIn("squeue: exit code 1: busy\n  the state of the run's job is unknown",
                      done.stderr)
        self.assertEqual([], self.called_with())
        self.assertIn('"5"', record.read_text())
        for env in (self.slurm_with("COMPLETED"), self.slurm_with("CANCELLED"),
                    self.slurm_with(error="slurm_load_jobs error: Invalid job id specified")):
            self.slurm(recipe, "--submit", env=env)
            self.assertEqual("sbatch", self.called_with()[0])
            self.job_record()

    def test_cancelling_what_has_ended_says_so(self):
        self.job_record()
        for state in ("COMPLETED", "TIMEOUT"):
            done = self.slurm("cancel", self.run_folder, env=self.slurm_with(state))
            self.assertEqual("job 5 has ended already: nothing is cancelled\n", done.stderr)
        self.assertEqual([], self.called_with())
        self.slurm("cancel", self.run_folder, env=self.slurm_with("RUNNING"))
        self.assertEqual(["scancel", "5"], self.called_with())

    def test_without_slurm_submitting_says_so(self):
        done = self.slurm(self.recipe(), "--submit", expect=2, env={"PATH": "/nonexistent"})
        self.assertIn("sbatch: is not on PATH", done.stderr)
        done = self.slurm("status", self.run_folder, expect=2)
        self.assertIn("slurm.json: does not exist", done.stderr)

    def test_the_log_of_a_job_is_shown(self):
        self.run_folder.mkdir()
        log = self.folder / "slurm-5.out"
        (self.run_folder / "slurm.json").write_text(f'{{"job": "5", "log": "{log}"}}')
        done = self.slurm("logs", self.run_folder, expect=2)
        self.assertIn("does not exist", done.stderr)
        log.write_text("one\ntwo\nthree\n")
        self.assertEqual("two\nthree\n", self.slurm("logs", "--lines", 2, self.run_folder).stdout)

    def test_no_secret_is_in_the_script(self):
        done = self.slurm(self.recipe(), env={"AWS_SECRET_ACCESS_KEY": "canary", "HF_TOKEN": "canary"})
        self.assertNotIn("canary", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
