"""Shards that PyPI's webdataset wrote are read by us, and the digits by both alike."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import webdataset

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "data_program")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def our_samples(shards):
    """(shard, key, label, digest of the image) of every sample, as our reader has them."""
    text = subprocess.run([PROGRAM, "samples", *map(str, shards)], check=True, timeout=60,
                          capture_output=True, text=True).stdout
    return [tuple(line.split(" ")) for line in text.splitlines()]


def their_samples(shards, image):
    """The same by webdataset."""
    dataset = webdataset.WebDataset([str(s) for s in shards], shardshuffle=False)
    return [(os.path.basename(s["__url__"]), s["__key__"], str(int(s["cls"])),
             hashlib.sha256(s[image]).hexdigest()) for s in dataset]


class WebDatasetTest(unittest.TestCase):
    def test_shards_of_webdataset_are_read(self):
        random = numpy.random.default_rng(5)
        with tempfile.TemporaryDirectory() as folder:
            pattern = os.path.join(folder, "set-%06d.tar")
            with webdataset.ShardWriter(pattern, maxcount=40, verbose=0) as writer:
                for i in range(100):
                    name = "long" * 60 if i % 7 == 0 else "short"
                    writer.write({
                        "__key__": f"folder/{name}/{i:04d}",
                        "jpg": random.integers(0, 256, (10 + i, 30, 3), dtype=numpy.uint8),
                        "cls": i % 10,
                        "json": {"number": i},
                    })
            shards = sorted(pathlib.Path(folder).glob("*.tar"))
            self.assertEqual(len(shards), 3)
            ours = our_samples(shards)
            self.assertEqual(len(ours), 100)
            self.assertEqual(ours, their_samples(shards, "jpg"))

    def test_the_digits_are_read_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, ROOT / "scripts/make_digits.py", folder], check=True,
                           timeout=120)
            shards = sorted(pathlib.Path(folder).glob("*.tar"))
            ours = our_samples(shards)
            self.assertEqual(ours, their_samples(shards, "png"))
            sizes = [sum(s[0].startswith(part) for s in ours) for part in ("train", "val", "test")]
            self.assertEqual(sizes, [1400, 200, 197])
            self.assertEqual(len({s[1] for s in ours}), 1797)  # every digit in one split only


if __name__ == "__main__":
    unittest.main()
