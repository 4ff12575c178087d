"""`srun scaletrain launch RECIPE`, one launcher a node, under a real Slurm of two nodes."""

import os
import subprocess
import tempfile
import unittest

from end_to_end import slurm_support
from end_to_end.support import SCALETRAIN, TIMEOUT_S, RunTestCase, inspect, records, wait_until


@unittest.skipIf(slurm_support.missing(), slurm_support.missing())
class Slurm(RunTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-slurm-")
        cls.addClassCleanup(folder.cleanup)
        cls.cluster = slurm_support.Cluster(folder.name)
        cls.addClassCleanup(cls.cluster.stop)

    def srun(self, flags, *arguments):
        """Starts `srun FLAGS scaletrain launch ARGUMENTS`."""
        process = subprocess.Popen(
            self.cluster.command("srun", *flags, SCALETRAIN, "launch", *arguments), cwd=self.folder,
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

    def test_tasks_that_do_not_fit_are_refused_with_the_line_to_change(self):
        process = self.srun(["-N1", "-n2"], self.recipe())
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(2, process.returncode, err)
        self.assertIn("srun started 2 tasks on 1 nodes", err)
        self.assertIn("#SBATCH --ntasks-per-node=1", err)
        self.assertFalse((self.folder / "recipe").exists())

    def test_a_cancelled_job_saves_and_goes_on(self):
        recipe = self.recipe(steps=400, checkpoint={"every": {"epochs": 100}})
        flags = ["-N2", "--ntasks-per-node=1"]
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
        wait_until(lambda: not self.left_workers(), "the workers to leave")

        again = self.srun(flags, "--resume", "auto", recipe)
        out, err = again.communicate(timeout=TIMEOUT_S)
        self.assertEqual(0, again.returncode, f"{out}\n{err}")
        undisturbed = self.recipe("undisturbed", steps=400, checkpoint={"every": {"epochs": 100}})
        self.run_scaletrain("launch", "--nproc", 2, "--set", "threads=2", undisturbed)
        self.assertEqual(inspect(self.folder / "undisturbed")["model_digest"],
                         inspect(run)["model_digest"])

    def left_workers(self):
        marker = str(self.folder).encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    command = file.read()
                cwd = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if b"scaletrain-worker" in command and marker.decode() in cwd:
                found.append(pid)
        return found


if __name__ == "__main__":
    unittest.main()
