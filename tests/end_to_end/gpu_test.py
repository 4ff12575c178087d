"""scripts/gpu.sh without a GPU: it says so, every part starts, and what is carried along suffices.

    scripts/gpu.sh --list
    scripts/gpu.sh pack
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from end_to_end import support

# All parts take minutes; these start every program. Of the model's data the shards are made and read.
QUICK = ["nccl", "killed", "vit_small"]
KINDS = {} if support.LONG else {"KINDS": "shards"}


def run(script, *arguments, out):
    return subprocess.run(
        [script, *arguments], capture_output=True, text=True, check=False, timeout=1100,
        env={**os.environ, **KINDS, "OUT": str(out), "PYTHON": sys.executable})


@unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "this machine has a GPU: run scripts/gpu.sh")
class GpuScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "out"

    def lines(self):
        return [json.loads(line) for line in (self.out / "gpu.jsonl").read_text().splitlines()]

    def test_every_part_starts(self):
        script = support.ROOT / "scripts/gpu.sh"
        parts = run(script, "--list", out=self.out).stdout.split()
        self.assertLessEqual(set(QUICK), set(parts))
        if not support.LONG:
            parts = QUICK
        done = run(script, *parts, out=self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        for part in parts:
            self.assertIn(f"{part}: no NVIDIA GPU here: tried on the CPU at a tiny size", done.stderr)
        self.assertEqual(set(parts), {line["part"] for line in self.lines()})
        self.assertEqual({False}, {line["gpu"] for line in self.lines()})
        # What was not measured on a GPU is no result.
        self.assertEqual(2, len((self.out / "gpu-results.md").read_text().splitlines()))

    def test_a_part_that_fails_is_named(self):
        done = run(support.ROOT / "scripts/gpu.sh", "resnet51", out=self.out)
        self.assertEqual(1, done.returncode)
        self.assertIn("gpu: failed: resnet51", done.stderr)

    @unittest.skipUnless(support.LONG, "compressing all programs takes minutes: the long form")
    def test_the_packed_folder_stands_alone(self):
        packed = self.folder / "packed"
        done = run(support.ROOT / "scripts/gpu.sh", "pack", packed, out=self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        done = run(packed / "scripts/gpu.sh", "deterministic", out=self.out)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue(self.lines()[0]["same"])


if __name__ == "__main__":
    unittest.main()
