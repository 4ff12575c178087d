"""A pipeline trains what one process trains, bit for bit, however its ranks divide the model; it is
validated, killed, resumed, and goes on with another number of ranks."""

import json
import unittest

from end_to_end import support
from end_to_end.text_test import TextTestCase

VIT = {"name": "vit_tiny", "num_classes": 10, "patch_size": 4, "dim": 16, "depth": 6, "heads": 2,
       "dropout": 0.1, "drop_path": 0.1}
GPT = {"name": "gpt2", "vocab_size": 257, "positions": 32, "dim": 32, "depth": 3, "heads": 2,
       "dropout": 0.1}
ADAMW = {"name": "adamw", "lr": 2e-3}
STEPS = 8


class PipelineTestCase(support.RunTestCase):
    def train(self, name, ranks, *flags, expect=0, env=None, steps=STEPS, **changes):
        """Runs the recipe of these keys with 4 micro-batches a step; its folder."""
        keys = {"model": VIT, "optimizer": ADAMW, "steps": steps, "threads": 1,
                "batch": {"per_device": 4, "accumulate": 4},
                "clip": {"norm": 1.0}, "ema": {"decay": 0.9},
                "validate": {"every": {"steps": 4}},
                "checkpoint": {"every": {"steps": 4}, "async": False}}
        path = self.recipe(name, **{**keys, **changes})
        self.said = self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect,
                                        env=env).stderr
        return self.folder / name

    def check_same(self, one, other):
        """Losses, norms, measures, order and the tensors that are saved have the same bits."""
        for event, keys in (("train", ("step", "loss", "grad_norm", "order_digest")),
                            ("eval", ("split", "step", "loss", "top1", "count"))):
            rows = [[[r.get(key) for key in keys] for r in support.records(run, event)]
                    for run in (one, other)]
            if event == "train":  # sums of squares of parts are added in another order
                for a, b in zip(*rows):
                    self.assertAlmostEqual(a.pop(2), b.pop(2), delta=1e-9 * a[1])
            self.assertEqual(*rows)
        self.assertEqual(*(support.inspect(run)["model_digest"] for run in (one, other)))

    def check_close(self, one, other):
        for event in ("train", "eval"):
            rows = [support.records(run, event) for run in (one, other)]
            self.assertEqual(len(rows[0]), len(rows[1]))
            for a, b in zip(*rows):
                self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-5 * abs(a["loss"]))
                self.assertEqual(a.get("order_digest"), b.get("order_digest"))


class ScheduleTest(PipelineTestCase):
    def test_each_schedule_trains_as_one_process_does(self):
        # What is clipped by is a sum of squares whose last bits depend on who adds them up.
        alone = self.train("alone", 1, clip=None)
        schedules = [("1f1b", 4), ("interleaved", 2)]
        if support.LONG:
            schedules += [("gpipe", 2), ("zero_bubble", 2)]
        for schedule, ranks in schedules:
            with self.subTest(schedule=schedule):
                run = self.train(schedule, ranks, clip=None,
                                 parallel={"pipeline": ranks, "schedule": schedule})
                self.check_same(alone, run)

    def test_a_residual_network_with_batch_norm_and_stages_of_equal_time(self):
        keys = {"model": {"name": "resnet18", "num_classes": 10}, "steps": 4, "clip": None,
                "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}}
        alone = self.train("alone", 1, **keys)
        run = self.train("pipeline", 2, parallel={"pipeline": 2, "balance": "time"}, **keys)
        self.check_same(alone, run)

    def test_replicas_of_a_pipeline_train_as_replicas(self):
        two = self.train("two", 2, batch={"global": 32, "per_device": 4})
        four = self.train("four", 4, batch={"global": 32, "per_device": 4},
                          parallel={"pipeline": 2})
        self.check_close(two, four)


class ResumeTest(PipelineTestCase):
    def test_a_killed_pipeline_goes_on_bit_for_bit_and_with_other_ranks(self):
        keys = {"clip": None, "parallel": {"pipeline": 2}}
        alone = self.train("alone", 2, **keys)
        killed = self.train("killed", 2, env={"SCALETRAIN_FAULT": "kill@7"}, expect=137, **keys)
        self.train("killed", 2, "--resume", "auto", **keys)
        self.assertNotIn("not bit for bit", self.said)
        self.check_same(alone, killed)

        # The state of the optimizer is that of the whole model: any number of stages takes it.
        others = [("to-one", 1, {}), ("to-four", 4, {"pipeline": 4})]
        for name, ranks, parallel in others if support.LONG else others[:1]:
            run = self.train(name, 2, env={"SCALETRAIN_FAULT": "kill@7"}, expect=137, **keys)
            self.train(name, ranks, "--resume", "auto", "--allow", "parallel.pipeline", clip=None,
                       parallel=parallel)
            self.check_same(alone, run)

    def test_stages_of_equal_time_are_those_of_the_checkpoint(self):
        keys = {"clip": None, "parallel": {"pipeline": 2, "balance": "time"}}
        run = self.train("time", 2, env={"SCALETRAIN_FAULT": "kill@7"}, expect=137, **keys)
        state = run / "checkpoints" / "step-00000004" / "state.json"
        measured = json.loads(state.read_text())["stage_begins"]
        self.assertEqual((2, 0), (len(measured), measured[0]))
        self.train("time", 2, "--resume", "auto", **keys)
        log = "".join(path.read_text() for path in sorted(run.glob("logs/attempt_*/0/stderr.log")))
        self.assertIn(", as before", log)
        self.assertNotIn("not bit for bit", self.said)
        last = run / "checkpoints" / f"step-{STEPS:08d}" / "state.json"
        self.assertEqual(measured, json.loads(last.read_text())["stage_begins"])


class TextPipelineTest(TextTestCase, PipelineTestCase):
    def test_a_decoder_with_a_tied_embedding(self):
        data = self.tokenize()
        keys = {"model": GPT, "data": data}
        alone = self.train("alone", 1, **keys)
        for schedule in ("1f1b", "zero_bubble"):
            with self.subTest(schedule=schedule):
                run = self.train(schedule, 2, parallel={"pipeline": 2, "schedule": schedule},
                                 **keys)
                self.check_close(alone, run)


class RefusalTest(PipelineTestCase):
    def test_unsupported_pipelines_are_refused_before_the_start(self):
        for changes, found in (
                ({"parallel": {"pipeline": 2}, "batch": {"per_device": 4}},
                 "1 micro-batch of a step is fewer than the 2 ranks of the pipeline"),
                ({"parallel": {"pipeline": 2}, "batch": {"per_device": 8, "global": 8}},
                 "1 micro-batch of a step is fewer than the 2 ranks of the pipeline"),
                ({"parallel": {"pipeline": 4}},
                 "2 ranks are not a multiple of 4 = pipeline 4"),
                ({"model": {**VIT, "depth": 1}, "parallel": {"pipeline": 4}},
                 "4 stages of a model that has 3 units\n  use at most 3 stages")):
            self.train("refused", 2, expect=2, **changes)
            self.assertIn(found, self.said)
            self.assertFalse((self.folder / "refused").exists())

    def test_explain_shows_the_schedule(self):
        path = self.recipe("pipeline", model=VIT, batch={"per_device": 4, "accumulate": 8},
                           parallel={"pipeline": 4})
        out = self.run_scaletrain("explain", "launch", "--nproc", 4, "--json", path).stdout
        rows = {row["name"]: row["value"] for row in json.loads(out)["recipe"]}
        self.assertEqual("27.3 %", rows["pipeline idle share"])
        self.assertEqual("4 3 2 1", rows["micro-batches held by rank"])


if __name__ == "__main__":
    unittest.main()
