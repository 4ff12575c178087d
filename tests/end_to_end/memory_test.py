"""What a run does about memory: the batch that fits, and what it says where memory runs out."""

import json
import struct
import subprocess
import unittest

from end_to_end import support

# Of address space: with LibTorch itself more than half is left. What steps free is kept in pieces,
# which take more than their tensors.
LIMIT_KB = 5_000_000
# The logits of a micro-batch are 1.6 GB.
VOCABULARY, CONTEXT, WINDOWS = 50000, 1024, 8


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

    def limited(self, recipe, *flags):
        done = subprocess.run(
            ["bash", "-c", f'ulimit -v {LIMIT_KB}; exec "$@"', "bash", support.SCALETRAIN,
             "launch", "--nproc", "2", *flags, recipe],
            capture_output=True, text=True, timeout=support.TIMEOUT_S)
        return done.returncode, done.stderr

    def test_the_advice_after_running_out_of_memory_is_enough(self):
        tokens = [number * 7919 % VOCABULARY for number in range(17 * CONTEXT)]
        (self.folder / "a.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        recipe = self.recipe(
            model={"name": "gpt2", "vocab_size": VOCABULARY, "positions": CONTEXT, "dim": 16,
                   "depth": 3, "heads": 2},
            data={"train": {"tokens": str(self.folder / "a.bin")}, "context": CONTEXT,
                  "threads": 1},
            batch={"per_device": WINDOWS}, steps=1, threads=1, device="cpu")
        status, said = self.limited(recipe)
        self.assertEqual(71, status, said)
        self.assertIn("step 1: ", said)
        self.assertIn("you tried to allocate 1638400000 bytes", said)
        self.assertIn("; a step's tensors: parameters ", said)
        self.assertIn('each of these needs about so much less: 2867.2 MB: "loss": {"name": '
                      '"cross_entropy", "chunk": 1024}; ', said)
        status, said = self.limited(recipe, "--resume", "auto", "--allow", "loss.chunk",
                                    "--set", "loss.chunk=1024")
        self.assertEqual(0, status, said)

    def test_no_memory_is_an_error_with_a_remedy(self):
        done = self.run_scaletrain("launch", "--nproc", 2, self.recipe(), expect=71,
                                   env={"SCALETRAIN_FAULT": "oom@2,1"})
        self.assertIn("step 2: CUDA out of memory. Tried to allocate 2.00 GiB.; a step's tensors: "
                      "parameters ", done.stderr)
        self.assertIn("each of these needs about so much less: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
