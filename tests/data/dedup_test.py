"""`scaletrain data dedup`: equal images and such as look alike, by Pillow's own hand."""
import io
import itertools
import json
import os
import unittest

import numpy
from PIL import Image

from tools_support import FolderTest, data, data_json, write_tar


def photo(seed):
    """A smooth picture with a few waves; other seeds look different."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:96, 0:128] / 30
    waves = [numpy.sin(random.uniform(0.3, 2) * x + random.uniform(0.3, 2) * y + random.uniform(0, 6))
             + numpy.cos(random.uniform(-2, 2) * x + random.uniform(-2, 2) * y) for _ in range(3)]
    return Image.fromarray((numpy.stack(waves, axis=2) * 55 + 128).clip(0, 255).astype("uint8"))


def encoded(image, quality=92):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def encoded_png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def dhash(image):
    """dHash by Pillow and NumPy."""
    small = numpy.asarray(image.resize((9, 8), Image.Resampling.BILINEAR), dtype=int)
    grey = small @ numpy.array([299, 587, 114])
    return int("".join("1" if a < b else "0" for row in grey for a, b in zip(row, row[1:])), 2)


class Dedup(FolderTest):
    def setUp(self):
        super().setUp()
        members = []
        def add(key, content, label=0):
            members.extend([(f"{key}.jpg", content), (f"{key}.cls", str(label).encode())])
        for i in range(30):
            add(f"{i:03d}", encoded(photo(i)), i % 3)
        add("copy", encoded(photo(4)), 1)
        add("wrong", encoded(photo(4)), 2)
        add("smaller", encoded(photo(7).resize((64, 48)), 80), 1)
        add("worse", encoded(photo(9), 40), 0)
        self.shard = write_tar(self.path("a.tar"), members)

    def test_equal_and_alike(self):
        report = data_json("dedup", self.shard, "--near", 3, "--threads", 3)
        keys = [[s["key"] for s in sets] for sets in report["exact"]]
        self.assertEqual([["004", "copy", "wrong"]], keys)
        self.assertEqual([["007", "smaller"], ["009", "worse"]],
                         [[s["key"] for s in sets] for sets in report["near"]])
        self.assertEqual(1, report["label_conflicts"])
        self.assertEqual([], data_json("dedup", self.shard)["near"])

    def test_the_hash_is_the_one_that_is_documented(self):
        """Which pairs are near follows from dHash computed by Pillow."""
        images = {line["key"]: Image.open(io.BytesIO(
            data("get", line["key"], self.shard, text=False)))
            for line in map(json.loads, data("ls", "--json", self.shard).splitlines())}
        hashes = {key: dhash(image) for key, image in images.items() if key not in ("copy", "wrong")}
        for distance in (0, 2, 7):
            sets = [{key} for key in hashes]
            for a, b in itertools.combinations(hashes, 2):
                if bin(hashes[a] ^ hashes[b]).count("1") <= distance:
                    joined = [each for each in sets if a in each or b in each]
                    sets = [each for each in sets if each not in joined] + [set.union(*joined)]
            found = data_json("dedup", self.shard, "--near", distance)["near"]
            self.assertEqual(sorted(sorted(each) for each in sets if len(each) > 1),
                             sorted(sorted(s["key"] for s in each) for each in found))

    def test_pictures_of_one_colour_are_one_set(self):
        """Equal hashes are many there, and are not compared each with each."""
        members = []
        for i in range(3000):
            colour = Image.new("RGB", (8, 8), (i % 256, i // 256, 128))
            members += [(f"{i}.png", encoded_png(colour)), (f"{i}.cls", b"0")]
        shard = write_tar(self.path("b.tar"), members)
        for distance in (0, 7):
            (alike,) = data_json("dedup", shard, "--near", distance)["near"]
            self.assertEqual([str(i) for i in range(3000)], [s["key"] for s in alike])

    def test_the_filtered_copy(self):
        self.write("classes.json", '["x", "y", "z"]')
        text = data("dedup", self.shard, "--near", 3, "--out", self.path("out"), "--drop-near")
        self.assertIn("4 samples left out", text)
        lines = [json.loads(line) for line in data("ls", "--json", self.path("out")).splitlines()]
        self.assertEqual([f"{i:03d}" for i in range(30)], [line["key"] for line in lines])
        self.assertTrue(os.path.exists(self.path("out", "classes.json")))
        self.assertEqual([], data_json("dedup", self.path("out"))["exact"])


if __name__ == "__main__":
    unittest.main()
