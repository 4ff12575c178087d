"""Every position of a run holds the same label and pixels, whatever reads them."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import swift_server
from end_to_end import support

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "data_program"
SHARDS = "train-{000000..000003}.tar"
AUGMENT = ["random_resized_crop", "random_flip", "trivial_augment", "random_erasing"]
# An epoch has 5 steps in the streamed order, 43 in the others.
ORDERS = {"indexed": {}, "repeated": {"repeats": 3},
          "streamed": {"order": "streamed", "lanes": 8, "shuffle_shards": 2,
                       "samples_per_epoch": 160}}
RANKS_AND_THREADS = ((1, 1), (2, 3), (4, 2), (1, 8))
STEPS = 12


def setUpModule():
    global swift
    folder = tempfile.TemporaryDirectory(prefix="scaletrain-swift-")
    unittest.addModuleCleanup(folder.cleanup)
    support.make_digits()
    swift = swift_server.Swift(folder.name)
    unittest.addModuleCleanup(swift.stop)
    swift.put("/digits")
    for path in sorted(support.DIGITS.glob("train-*.tar")):
        swift.put(f"/digits/{path.name}", path.read_bytes())
        swift.put(f"/digits/{path.name}.gz", gzip.compress(path.read_bytes()))


class SameContentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def content(self, order, ranks, threads, source=support.DIGITS, ending="", first=0,
                steps=STEPS, in_memory=0):
        """The lines of `steps` steps, by position."""
        options = dict(ORDERS[order])
        train = {"shards": f"{source}/{SHARDS}{ending}", "augment": AUGMENT,
                 "repeats": options.pop("repeats", 1)}
        if in_memory:
            train["cache"] = {"name": "memory", "max_bytes": in_memory}
        recipe = {"seed": 3, "model": {"name": "mlp", "num_classes": 10}, "steps": 1,
                  "optimizer": {"name": "sgd", "lr": 1}, "batch": {"global": 32, "per_device": 8},
                  "data": {"train": train, "image_size": 16, **options,
                           "cache": {"folder": str(self.folder / "cache"), "max_bytes": 1 << 26}}}
        path = self.folder / "recipe.json"
        path.write_text(json.dumps(recipe))
        done = subprocess.run([PROGRAM, "content", path, *map(str, (ranks, threads, first, steps))],
                              env={**os.environ, **swift_server.environment(f"http://127.0.0.1:{swift.port}")},
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(done.stdout.splitlines(), key=lambda line: tuple(map(int, line.split()[:2])))
        self.assertEqual(len(lines), steps * 32)
        return lines, done.stderr

    def check(self, order):
        expected, _ = self.content(order, 1, 1)
        self.assertGreater(len({line.split()[3] for line in expected}), 300)
        for ranks, threads in RANKS_AND_THREADS[1:]:
            self.assertEqual(self.content(order, ranks, threads)[0], expected)
        # As after a kill in the middle of an epoch, on other ranks.
        later, _ = self.content(order, 2, 2, first=7, steps=STEPS - 7)
        self.assertEqual(later, expected[7 * 32:])
        endings = ("", ".gz") if order == "streamed" else ("",)
        for ending in endings:
            shutil.rmtree(self.folder / "cache", ignore_errors=True)
            for ranks, threads in ((2, 3), (1, 2)):  # cold, then warm
                self.assertEqual(self.content(order, ranks, threads, "s3://digits", ending)[0],
                                 expected)
        kept, log = self.content(order, 2, 3, in_memory=1 << 26)
        self.assertEqual(kept, expected)
        self.assertNotIn("in memory is full", log)
        kept, log = self.content(order, 2, 3, in_memory=1 << 15)
        self.assertEqual(kept, expected)
        self.assertIn("the cache in memory is full", log)

    def test_indexed(self):
        self.check("indexed")

    def test_indexed_with_repeats(self):
        self.check("repeated")

    def test_streamed(self):
        self.check("streamed")


if __name__ == "__main__":
    unittest.main()
