"""What a run does about memory: the batch that fits, and what it says where memory runs out."""

import json
import unittest

from end_to_end import support


class MemoryTest(support.RunTestCase):
    def test_the_batch_that_fits_is_kept_for_a_resume(self):
        recipe = self.recipe(batch={"per_device": "auto", "global": 64, "memory_mb": 1000}, steps=4)
        done = self.run_scaletrain("launch", "--nproc", 2, recipe)
        run = self.folder / "recipe"
        stored = json.loads((run / "recipe.json").read_text())
        self.assertEqual(32, stored["batch"]["per_device"])
        log = "".join(path.read_text() for path in run.glob("logs/*/0/stderr.log"))
        self.assertIn("batch.per_device is 32 of 32: a step takes ", log + done.stderr)
        # One rank takes half of its 64: what the checkpoint says, which it has not to find.
        again = self.run_scaletrain("launch", "--resume", "auto", "--allow", "steps", "--set",
                                    "steps=6", recipe)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        steps = [line["step"] for line in lines if line["event"] == "train"]
        self.assertEqual([1, 2, 3, 4, 5, 6], steps)
        self.assertNotIn("batch.per_device is", again.stderr)
        explained = self.run_scaletrain("explain", "launch", "--nproc", 2, recipe).stdout
        self.assertIn("64 over 2 ranks, in micro-batches that fit", explained)

    def test_no_memory_is_an_error_with_a_remedy(self):
        done = self.run_scaletrain("launch", "--nproc", 2, self.recipe(), expect=71,
                                   env={"SCALETRAIN_FAULT": "oom@2,1"})
        self.assertIn("step 2: CUDA out of memory. Tried to allocate 2.00 GiB.; a step's tensors: "
                      "parameters ", done.stderr)
        self.assertIn("each of these needs about so much less: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
