"""journal.jsonl: every event of a run that is killed, starts again, is resumed and finishes."""

import json
import unittest

from end_to_end import support


class JournalTest(support.RunTestCase):
    def test_a_run_that_is_killed_twice_and_resumed_has_its_story(self):
        recipe = self.recipe(steps=40, checkpoint={"every": {"steps": 7}, "async": False})
        run = self.folder / "recipe"
        self.run_scaletrain("launch", "--max-restarts", 1, recipe,
                            env={"SCALETRAIN_FAULT": "kill@24"}, expect=137)
        self.run_scaletrain("resume", run, env={"SCALETRAIN_FAULT": "nan@30"})
        events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
        self.assertEqual(
            [("attempt_started", 0), ("attempt_failed", 0), ("restarting", 0), ("attempt_started", 1),
             ("attempt_failed", 1), ("attempt_started", 2), ("step_skipped", 2), ("finished", 2)],
            [(event["event"], event["attempt"]) for event in events if event["event"] != "checkpoint_saved"])
        saved = {(event["attempt"], event["step"]) for event in events if event["event"] == "checkpoint_saved"}
        self.assertLessEqual({(0, 7), (0, 14), (0, 21), (2, 28), (2, 35), (2, 40)}, saved)
        started = [event for event in events if event["event"] == "attempt_started"]
        self.assertEqual([None, 21, 21], [event.get("step") for event in started])
        self.assertTrue(started[1]["resumed_from"].endswith("step-00000021"), started[1])
        failed = next(event for event in events if event["event"] == "attempt_failed")
        self.assertEqual((0, "SIGKILL", 137), (failed["rank"], failed["signal"], failed["exit_code"]))
        skipped = next(event for event in events if event["event"] == "step_skipped")
        self.assertTrue(skipped["cause"].startswith("not finite: loss"), skipped)
        self.assertEqual(sorted(event["time"] for event in events), [event["time"] for event in events])

        story = self.run_scaletrain("explain", "run", run).stdout
        self.assertTrue(story.startswith("recipe: finished after 3 attempts, "), story)
        for sentence in (r"Attempt 0 started with 1 rank on 1 node, from the beginning\.",
                         r"3 checkpoints were saved, steps 7 to 21\.",
                         r"Attempt 0 failed.*: rank 0 \(host .*\) was killed by SIGKILL",
                         r"Starting again: restart 1 of 1",
                         r"Attempt 2 started with 1 rank on 1 node, resumed from the checkpoint of step 21\.",
                         r"Step \d+ was skipped: not finite: loss", r"The run finished at step 40\."):
            self.assertRegex(story, sentence)
        self.assertEqual(story, self.run_scaletrain("explain", run).stdout)

    def test_the_lines_of_the_console_are_kept_without_the_bar(self):
        recipe = self.recipe(steps=10)
        done = self.run_scaletrain("launch", recipe)
        kept = (self.folder / "recipe/console.log").read_text()
        for text in (r"(?m)^epoch 1/1  step 10/10  loss ", r"(?m)^val: top-1 ", r"(?m)^recipe: done, 10 steps in "):
            self.assertRegex(kept, text)
        self.assertNotIn("\r", kept)
        self.assertLessEqual(set(kept.splitlines()), set((done.stdout + done.stderr).splitlines()))


if __name__ == "__main__":
    unittest.main()
