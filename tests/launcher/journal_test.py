"""Events that the launcher writes into journal.jsonl, and the story that `explain run` prints."""

import json
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S
from launcher.runs_support import RunsTestCase


class Journal(RecipeTestCase):
    def events(self):
        return [json.loads(line) for line in (self.run_folder / "journal.jsonl").read_text().splitlines()]

    def test_a_failure_and_a_restart_are_recorded_with_their_cause(self):
        self.script("[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; exit 74\n")
        self.launch("--max-restarts", 1, self.recipe())
        started, failed, again, second = self.events()
        self.assertEqual(("attempt_started", 0, 1, 1), tuple(
            started[key] for key in ("event", "attempt", "ranks", "nodes")))
        self.assertNotIn("resumed_from", started)
        self.assertEqual(("attempt_failed", 0, 0, 74), tuple(
            failed[key] for key in ("event", "attempt", "rank", "exit_code")))
        self.assertEqual("restarting", again["event"])
        self.assertTrue(again["text"].startswith("starting again: restart 1 of 1"), again)
        self.assertIn("rank 0", again["cause"])
        self.assertEqual(("attempt_started", 1, 1), tuple(
            second[key] for key in ("event", "attempt", "restart")))

    def test_a_signal_is_recorded(self):
        self.script("touch \"$TEST_FOLDER/ready$RANK\"; while :; do sleep 0.05; done\n")
        process = self.start("launch", "--worker", self.worker, self.recipe())
        self.wait_for_files("ready0")
        process.terminate()
        process.wait(LIMIT_S)
        last = self.events()[-1]
        self.assertEqual(("stopped", "SIGTERM"), (last["event"], last["signal"]))

    def test_a_journal_that_cannot_be_written_is_a_warning(self):
        self.script()
        (self.run_folder / "journal.jsonl").mkdir(parents=True)
        done = self.launch(self.recipe())
        self.assertEqual(1, done.stderr.count("journal.jsonl: Is a directory"), done.stderr)


class Story(RunsTestCase):
    def story(self, run, *events):
        lines = [json.dumps({"attempt": 0, "time": 1000.0 + i, **event}) for i, event in enumerate(events)]
        (run / "journal.jsonl").write_text("\n".join(lines) + "\n{\"eve")
        return [event["text"] for event in self.json_of("explain", "run", run, "--json")["events"]]

    def test_each_event_is_a_sentence_with_its_cause(self):
        run = self.write_run("a")
        self.assertEqual(
            ["Attempt 0 started with 4 ranks on 2 nodes, from the beginning.",
             "2 checkpoints were saved, steps 10 to 20.",
             "The learning rate was multiplied by 0.5 at step 20: loss has not improved.",
             "No checkpoint was saved at step 30: x: No space left on device (ENOSPC).",
             "Step 31 was skipped: not finite: loss nan, gradient norm nan.",
             "Attempt 0 failed at step 33: rank 3 (host h) ended with exit code 74: the first line.",
             "Starting again: restart 1 of 3."],
            self.story(run, {"event": "attempt_started", "ranks": 4, "nodes": 2},
                       {"event": "checkpoint_saved", "step": 10}, {"event": "checkpoint_saved", "step": 20},
                       {"event": "lr_reduced", "step": 20, "factor": 0.5, "cause": "loss has not improved"},
                       {"event": "checkpoint_refused", "step": 30, "cause": "x: No space left on device (ENOSPC)"},
                       {"event": "step_skipped", "step": 31, "cause": "not finite: loss nan, gradient norm nan"},
                       {"event": "attempt_failed", "rank": 3, "host": "h", "step": 33, "exit_code": 74,
                        "cause": "the first line\nthe second"},
                       {"event": "restarting", "text": "starting again: restart 1 of 3"}))

    def test_an_anomalous_step_is_told_with_its_rank_unit_and_samples(self):
        run = self.write_run("a")
        spike = {"event": "anomaly", "step": 7, "kind": "loss spike", "policy": "clip", "skipped": False, "rank": 0,
                 "samples": 1, "keys": ["a.tar/3"], "cause": "loss 9 is above the bound of 3"}
        nan = {"event": "anomaly", "step": 9, "kind": "not finite", "policy": "rollback", "skipped": True, "rank": 2,
               "unit": "layer3.0", "samples": 16, "keys": [f"a.tar/{i}" for i in range(16)],
               "cause": "not finite: loss nan, gradient norm nan"}
        self.assertEqual(
            ["Step 7 was anomalous and clipped: loss 9 is above the bound of 3. It came from rank 0; its samples: "
             "a.tar/3.",
             "Step 9 was anomalous and left out: not finite: loss nan, gradient norm nan. It came from rank 2, where "
             "layer3.0 was the first not finite; its samples: a.tar/0, a.tar/1, a.tar/2 and 13 more.",
             "The run went back to the weights of step 5: the batches of steps 6 to 9 are skipped.",
             "Training stands still at step 20: the loss has not changed."],
            self.story(run, spike, nan, {"event": "rolled_back", "step": 9, "checkpoint": 5},
                       {"event": "saturated", "step": 20, "cause": "the loss has not changed"}))

    def test_silent_data_corruption_is_told_with_the_rank_if_a_majority_shows_it(self):
        run = self.write_run("a")
        differ = {"event": "replicas_differ", "step": 50, "action": "restore", "tensor": "fc.weight",
                  "cause": "fc.weight, element 7: 1 on rank 0, 2 on rank 1; 1 tensor differs"}
        self.assertEqual(
            ["Replicas differed at step 50 (silent data corruption): fc.weight, element 7: 1 on rank 0, 2 on rank 1; "
             "1 tensor differs. No majority shows which rank is wrong.",
             "Replicas differed at step 50 (silent data corruption): fc.weight, element 7: 1 on rank 0, 2 on rank 1; "
             "1 tensor differs. The majority differs from rank 1.",
             "The run went back to the checkpoint of step 40 and repeated steps 41 to 50.",
             "A matrix product was wrong, found at step 50: rank 1 computed it."],
            self.story(run, {**differ, "wrong": []}, {**differ, "wrong": [1]},
                       {"event": "went_back", "step": 50, "checkpoint": 40},
                       {"event": "wrong_product", "step": 50, "cause": "rank 1 computed it"}))

    def test_an_attempt_without_an_end_was_killed(self):
        run = self.write_run("a")
        self.assertEqual(
            ["Attempt 0 started with 1 rank on 1 node, from the beginning.",
             "Attempt 0 ended without a record: its launcher or machine was killed.",
             "Attempt 1 started with 1 rank on 1 node, resumed from the checkpoint of step 10.",
             "Training stopped early at step 40: loss is good enough.", "The run finished at step 40."],
            self.story(run, {"event": "attempt_started", "ranks": 1, "nodes": 1},
                       {"event": "attempt_started", "attempt": 1, "ranks": 1, "nodes": 1, "step": 10},
                       {"event": "early_stopped", "attempt": 1, "step": 40, "cause": "loss is good enough"},
                       {"event": "finished", "attempt": 1, "step": 40}))

    def test_nodes_that_join_and_are_lost_come_from_the_journals_of_the_launchers(self):
        run = self.write_run("a")
        (run / "logs/agents").mkdir(parents=True)
        (run / "logs/agents/h.1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (
            {"time": 1000.5, "agent": "h.1", "event": "join", "who": "k.2", "node": 1},
            {"time": 1000.6, "agent": "h.1", "event": "round", "round": 1},
            {"time": 1001.5, "agent": "h.1", "event": "lose", "who": "k.2", "node": 1, "why": "no heartbeat"})))
        self.assertEqual(
            ["Attempt 0 started with 2 ranks on 2 nodes, from the beginning.", "Node 1 (k.2) joined the job.",
             "The job was stopped by SIGTERM.", "Node 1 (k.2) was lost: no heartbeat."],
            self.story(run, {"event": "attempt_started", "ranks": 2, "nodes": 2},
                       {"event": "stopped", "signal": "SIGTERM"}))

    def test_a_run_without_a_journal_has_its_starts(self):
        run = self.write_run("a")
        text = self.run_launcher("explain", "run", run).stdout
        self.assertIn("  Attempt 0 wrote its first record.\n", text)
        self.assertIn("journal.jsonl is missing", text)

    def test_a_folder_without_a_run_is_refused(self):
        self.assertIn("holds no run", self.run_launcher("explain", "run", self.folder, expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
