"""The start block of a run, on the console and as start.json, and the pictures of a demo that are always the same."""

import json
import unittest

from end_to_end import support


class StartBlockTest(support.RunTestCase):
    def start_of(self, name):
        return json.loads((self.folder / name / "start.json").read_text())

    def test_the_start_summary_is_printed_before_the_first_step_with_sets_batch_and_layout(self):
        done = self.run_scaletrain(
            "launch", "--nproc", 2, self.recipe("run", batch={"per_device": 8, "accumulate": 2},
                                                schedule={"warmup": {"steps": 2}, "decay": "cosine"}))
        start = self.start_of("run")
        self.assertEqual(("mlp", 0, None),
                         tuple(start["model"][key] for key in ("name", "frozen", "weights")))
        self.assertEqual(start["model"]["parameters"], start["model"]["trained"])
        self.assertEqual([("train", 1400, 4), ("val", 200, 1), ("test", 197, 1)],
                         [(one["split"], one["samples"], one["shards"])
                          for one in start["data"]["sets"]])
        self.assertEqual(10, start["data"]["classes"])
        self.assertEqual({"global": 32, "per_device": 8, "accumulation": 2, "data_parallel": 2},
                         start["batch"])
        self.assertEqual((20, {"data": 2}), (start["total_steps"], start["layout"]))
        parameters = 4 * start["model"]["parameters"]  # fp32
        # Gradient accumulation adds up in the buckets of the all-reduce.
        self.assertEqual((parameters, parameters),
                         (start["memory_bytes"]["parameters"], start["memory_bytes"]["gradients"]))
        self.assertEqual((2, 1), (start["devices"]["ranks"], start["devices"]["nodes"]))
        self.assertIn("  data       train 1,400 samples (4 shards), val 200 samples, test 197 samples; "
                      "10 classes\n", done.stderr)
        self.assertIn("  batch      32 = 8 per device x 2 accumulation x 2 data parallel; ", done.stderr)
        self.assertRegex(done.stderr, r"\n  model FLOPs  .* a step, .*/s a device; "
                                      r"no MFU: the peak of this CPU is not known\n")
        self.assertLess(done.stderr.index("  model      mlp, "), done.stderr.index("epoch 1/"))
        self.assertIn("  optimizer  sgd, lr 0.05 (warmup 2 steps, cosine), weight decay ", done.stderr)
        self.assertIn("  run        run\n", done.stderr)  # relative to the working directory

    def test_a_resumed_run_shows_the_step_that_it_continues_after(self):
        self.run_scaletrain("launch", self.recipe("run", steps=4))
        self.assertEqual(0, self.start_of("run")["step"])
        done = self.run_scaletrain("resume", self.folder / "run", "--set", "steps=6", "--allow", "steps")
        self.assertIn("  continues  after step 4\n", done.stderr)
        self.assertEqual((4, 6), tuple(self.start_of("run")[key] for key in ("step", "total_steps")))

    def test_two_demos_draw_the_same_pictures_and_take_the_same_steps(self):
        for name in ("a", "b"):
            self.run_scaletrain("demo", "--output", name)
        shards = [(self.folder / name / "shards/train-000000.tar").read_bytes() for name in ("a", "b")]
        self.assertEqual(shards[0], shards[1])
        steps = [[(record["step"], record["loss"], record["order_digest"])
                  for record in support.records(self.folder / name / "run", "train")]
                 for name in ("a", "b")]
        self.assertEqual(steps[0], steps[1])
        self.assertEqual(6, self.start_of("a/run")["data"]["classes"])


if __name__ == "__main__":
    unittest.main()
