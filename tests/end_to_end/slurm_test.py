"""`srun scaletrain launch RECIPE`, one launcher a node, and `srun scaletrain worker RECIPE`, one task
a rank, under a real Slurm of two nodes."""

import subprocess
import unittest
import unittest.mock

from end_to_end import slurm_support
from end_to_end.support import SCALETRAIN, TIMEOUT_S, inspect, records, wait_until


class Slurm(slurm_support.ClusterTestCase):
    def srun(self, flags, *arguments, command="launch"):
        """Starts `srun FLAGS scaletrain COMMAND ARGUMENTS`."""
        process = subprocess.Popen(
            self.cluster.command("srun", *flags, SCALETRAIN, command, *arguments), cwd=self.folder,
            env=self.cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_two_nodes_train_as_one_node_with_two_workers(self):
        alone = self.recipe("alone", steps=12, threads=1)
        self.run_scaletrain("launch", "--nproc", 2, alone)
        apart = self.recipe("apart", steps=12, threads=1)
        process = self.srun(["-N2", "--ntasks-per-node=1"], apart)
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(0, process.returncode, f"{out}\n{err}")
        chains = [[(r["step"], r["loss"], r["order_digest"]) for r in records(self.folder / n, "train")]
                  for n in ("alone", "apart")]
        self.assertEqual(12, len(chains[0]))
        self.assertEqual(chains[0], chains[1])

    def test_tasks_train_as_the_workers_of_one_launcher(self):
        alone = self.recipe("alone", steps=12, threads=1)
        self.run_scaletrain("launch", "--nproc", 3, alone)
        apart = self.recipe("apart", steps=12, threads=1)
        process = self.srun(["-N2", "-n3"], apart, command="worker")  # two tasks and one
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(0, process.returncode, f"{out}\n{err}")
        chains = [[(r["step"], r["loss"], r["order_digest"]) for r in records(self.folder / n, "train")]
                  for n in ("alone", "apart")]
        self.assertEqual(12, len(chains[0]))
        self.assertEqual(chains[0], chains[1])

    def test_a_killed_task_is_named_and_the_others_leave(self):
        recipe = self.recipe(steps=5000)
        environment = {"SCALETRAIN_FAULT": "kill@5,1"}
        with unittest.mock.patch.dict(self.cluster.environment, environment):
            process = self.srun(["-N1", "-n2"], recipe, command="worker")
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(137, process.returncode, err)
        self.assertRegex(err, r"rank 1.*SIGKILL")
        wait_until(lambda: not slurm_support.workers_in(self.folder), "the workers to leave")

    def test_gpus_that_are_not_seen_are_refused_with_the_line_to_change(self):
        for flags, error in [(["-n1"], "#SBATCH --ntasks-per-node=2"), (["-n2"], "none is visible")]:
            process = self.srun(["-N1", "--gpus-per-node=2", *flags], self.recipe(), command="worker")
            _, err = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(2, process.returncode, err)
            self.assertIn(error, err)
        process = self.srun(["-N1", "-n1", "--gpus-per-node=2"], self.recipe())
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(2, process.returncode, err)
        self.assertIn("#SBATCH --gpus-per-node=N", err)

    def test_tasks_that_do_not_fit_are_refused_with_the_line_to_change(self):
        process = self.srun(["-N1", "-n2"], self.recipe())
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(2, process.returncode, err)
        self.assertIn("srun started 2 tasks on 1 node", err)
        self.assertIn("#SBATCH --ntasks-per-node=1", err)
        self.assertFalse((self.folder / "recipe").exists())

    def test_a_cancelled_job_saves_and_goes_on(self):
        changes = dict(steps=60, threads=1, checkpoint={"every": {"epochs": 100}})
        recipe = self.recipe(**changes)
        flags = ["-N2", "--ntasks-per-node=1"]
        with unittest.mock.patch.dict(self.cluster.environment, SCALETRAIN_FAULT="slows@7"):
            process = self.srun(flags, "--resume", "auto", recipe)
        run = self.folder / "recipe"
        wait_until(lambda: (run / "metrics.jsonl").exists() and len(records(run, "train")) > 5,
                   "some steps")
        jobs = self.cluster.run("squeue", "--noheader", "--format=%i").split()
        self.cluster.run("scancel", *jobs)
        process.communicate(timeout=TIMEOUT_S)
        self.assertNotEqual(0, process.returncode)
        saved = wait_until(lambda: list((run / "checkpoints").glob("step-*")), "a checkpoint")
        self.assertEqual(1, len(saved))
        wait_until(lambda: not slurm_support.workers_in(self.folder), "the workers to leave")

        again = self.srun(flags, "--resume", "auto", recipe)
        out, err = again.communicate(timeout=TIMEOUT_S)
        self.assertEqual(0, again.returncode, f"{out}\n{err}")
        self.run_scaletrain("launch", "--nproc", 2, self.recipe("undisturbed", **changes))
        self.assertEqual(inspect(self.folder / "undisturbed")["model_digest"],
                         inspect(run)["model_digest"])


if __name__ == "__main__":
    unittest.main()
