"""scaletrain launch RECIPE, stopped by signals."""

import signal
import time
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S


class Stopping(RecipeTestCase):
    def stop(self, number, body, *flags):
        self.script(body + "touch \"$TEST_FOLDER/ready$RANK\"; while :; do sleep 0.05; done\n")
        process = self.start("launch", "--worker", self.worker, "--nproc", 2, *flags, self.recipe())
        self.wait_for_files("ready0", "ready1")
        process.send_signal(number)
        return process

    def finish(self, process, expect):
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(expect, process.returncode, err)
        self.assert_nothing_left()
        return err

    def test_saved_and_stopped_is_75_or_130(self):
        for number, trap, code in ((signal.SIGTERM, "TERM", 75), (signal.SIGUSR1, "USR1", 75),
                                   (signal.SIGUSR2, "USR2", 75),
                                   (signal.SIGHUP, "TERM", 75), (signal.SIGINT, "INT", 130)):
            err = self.finish(self.stop(number, f"trap 'exit {code}' {trap};"), code)
            self.assertIn(f"stopped; continue with: scaletrain resume {self.run_folder} --nproc 2\n", err)
            self.assertFalse((self.run_folder / "failure.json").exists())
            for rank in (0, 1):
                (self.folder / f"ready{rank}").unlink()

    def test_workers_that_do_not_save_in_time_are_killed(self):
        start = time.monotonic()
        err = self.finish(self.stop(signal.SIGTERM, "trap '' TERM;", "--grace", "200ms"), 75)
        self.assertLess(time.monotonic() - start, 20)
        self.assertIn("2 workers were killed before they had finished\n", err)

    def test_a_second_ctrl_c_is_130_at_once(self):
        process = self.stop(signal.SIGINT, "trap '' INT TERM;")
        self.assertIn("SIGINT: stopping", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertIn("SIGINT again: killing 2 workers\n", self.finish(process, 130))

    def test_one_ctrl_c_after_another_signal_lets_the_workers_save(self):
        process = self.stop(signal.SIGTERM, "trap 'sleep 1; exit 75' TERM; trap '' INT;")
        self.assertIn("SIGTERM: stopping", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertNotIn("killed", self.finish(process, 75))

    def test_a_failure_while_stopping_is_still_a_failure(self):
        err = self.finish(self.stop(signal.SIGTERM, "trap 'exit 74' TERM;", "--max-restarts", "3"),
                          74)
        self.assertIn("failed first: exit code 74", err)
        self.assertNotIn("starting again", err)

    def test_a_killed_launcher_takes_its_workers_with_it(self):
        process = self.stop(signal.SIGKILL, "")
        process.wait(LIMIT_S)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
