"""A start that failed before its first checkpoint leaves no run: the next one takes its own recipe."""

import json
import re
import shutil
import unittest

from free_port import free_port
from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S


class FailedStart(RecipeTestCase):
    def recipe_with(self, lr):
        return self.recipe(optimizer={"name": "sgd", "lr": lr})

    def fail_to_start(self):
        self.script("exit 65\n")
        done = self.launch("--nproc", 2, self.recipe_with(1000), expect=65)
        self.assertIn("when that is put right, start again with: scaletrain launch", done.stderr)
        self.script()

    def trained_with(self):
        return json.loads((self.run_folder / "recipe.json").read_text())["optimizer"]["lr"]

    def test_the_recipe_that_is_given_next_replaces_that_of_the_failed_start(self):
        self.fail_to_start()
        done = self.launch("--nproc", 2, "--resume", "auto", self.recipe_with(0.2))
        self.assertEqual(
            f"{self.run_folder}: an earlier start left no checkpoint: the recipe given now replaces "
            f"its recipe\n{self.run_folder}: no checkpoint yet, starting from the beginning\n",
            done.stderr)
        self.assertEqual(0.2, self.trained_with())

    def test_a_start_that_died_between_the_log_folders_of_its_ranks_is_no_run_of_fewer_ranks(self):
        self.fail_to_start()
        shutil.rmtree(self.run_folder / "logs/attempt_0/1")
        self.launch("--nproc", 2, self.run_folder, command="resume")
        self.launch(self.run_folder, command="resume")  # nor one of two ranks
        self.launch("--resume", "auto", self.recipe_with(1000))

    def test_a_recipe_that_is_damaged_is_replaced(self):
        self.fail_to_start()
        (self.run_folder / "recipe.json").write_text("{")
        self.launch("--resume", "auto", self.recipe_with(0.2))
        self.assertEqual(0.2, self.trained_with())

    def write_refusal(self, step=-1):
        """A worker that refuses the recipe before it trains, or at `step`."""
        self.script('printf \'{"message": {"message": "/model/freeze: fits nothing", "extraInfo": {"step": '
                    f'{step}}}}}}}\' >"$TORCHELASTIC_ERROR_FILE"; exit 2\n')

    def refuse(self, *arguments, command="launch", step=-1):
        self.write_refusal(step)
        return self.launch("--nproc", 2, *arguments, command=command, expect=2).stderr

    def test_a_recipe_that_the_workers_refuse_leaves_no_folder(self):
        self.assertEqual("/model/freeze: fits nothing\n", self.refuse(self.recipe()))
        self.assertFalse(self.run_folder.exists())

    def refuse_on_nodes(self):
        """What each of two launchers says whose workers refuse the recipe."""
        self.write_refusal()
        port = free_port()
        nodes = [self.start("launch", "--worker", self.worker, "--nnodes", 2, "--node-rank", rank,
                            "--master-addr", "127.0.0.1", "--master-port", port, self.recipe())
                 for rank in (0, 1)]
        said = [re.sub("^joined the job at .*\n", "", node.communicate(timeout=LIMIT_S)[1]) for node in nodes]
        self.assertEqual([2, 2], [node.returncode for node in nodes], said)
        self.assert_nothing_left()
        return said

    def test_nodes_whose_workers_refuse_the_recipe_leave_no_folder(self):
        self.assertEqual(["/model/freeze: fits nothing\n"] * 2, self.refuse_on_nodes())
        self.assertFalse(self.run_folder.exists())
        self.run_folder.mkdir()
        (self.run_folder / "notes.txt").write_text("mine")
        self.assertIn("when that is put right, start again with: scaletrain launch", self.refuse_on_nodes()[0])
        self.assertEqual("mine", (self.run_folder / "notes.txt").read_text())

    def test_a_folder_that_was_there_before_stays(self):
        self.run_folder.mkdir()
        (self.run_folder / "notes.txt").write_text("mine")
        said = self.refuse(self.recipe())
        self.assertIn("when that is put right, start again with: scaletrain launch", said)
        self.assertEqual("mine", (self.run_folder / "notes.txt").read_text())
        self.assertTrue((self.run_folder / "failure.json").exists())

    def test_a_recipe_that_is_refused_after_training_began_leaves_its_logs(self):
        self.assertIn("all logs: ", self.refuse(self.recipe(), step=3))
        self.assertTrue((self.run_folder / "failure.json").exists())

    def test_with_a_checkpoint_the_recipes_are_compared_and_a_resume_is_advised(self):
        self.a_run(3)
        self.launch("--resume", "auto", self.recipe_with(0.2), expect=2)
        self.script("exit 65\n")
        done = self.launch(self.run_folder, command="resume", expect=65)
        self.assertIn(f"continue with: scaletrain resume {self.run_folder}", done.stderr)


if __name__ == "__main__":
    unittest.main()
