"""A run that goes on with another number of ranks before its first checkpoint."""

import unittest

from launcher.launch_recipe_test import RecipeTestCase


class OtherRanks(RecipeTestCase):
    def test_another_number_of_ranks_must_be_allowed_before_the_first_checkpoint(self):
        self.script()
        self.launch("--nproc", 2, self.recipe())
        text = (f"{self.run_folder}: the run began with 2 ranks and a global batch of 8, and 1 would "
                "make it 4\n  start 2 ranks again (--nproc, --nnodes), or, if the change is meant, "
                "give --allow batch\n")
        self.assertEqual(text, self.launch(self.run_folder, command="resume", expect=2).stderr)
        self.assertEqual(text, self.launch("--resume", "auto", self.recipe(), expect=2).stderr)
        self.launch("--nproc", 2, self.run_folder, command="resume")
        self.launch("--allow", "batch", self.run_folder, command="resume")
        self.launch(self.run_folder, command="resume")  # one rank, as the last time


if __name__ == "__main__":
    unittest.main()
