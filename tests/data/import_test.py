"""`scaletrain data import`: what lmdb, gzip, tarfile and a TFRecord writer wrote is in the shards."""
import bz2
import glob
import gzip
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import unittest

import lmdb
import numpy
import tfrecord
import zstandard
from PIL import Image

from tools_support import (PROGRAM, FolderTest, class_folders, data, picture, read_bytes,
                           read_json, samples_of, write_tar)


class Import(FolderTest):
    def test_lmdb(self):
        expected = []
        with lmdb.open(self.path("set"), map_size=1 << 24) as environment:
            with environment.begin(write=True) as transaction:
                for i in range(25):
                    fields = {"jpg": picture(i), "cls": str(i % 4).encode()}
                    expected.append((f"d/{i:03d}", fields))
                    for extension, content in fields.items():
                        transaction.put(f"d/{i:03d}.{extension}".encode(), content)
        text = data("import", "lmdb", self.path("set"), "--out", self.path("out"),
                    "--samples-per-shard", 10)
        self.assertIn("imported 25 samples into 3 shards", text)
        self.assertEqual(expected, samples_of(self.path("out")))
        data("check", self.path("out"))
        self.assertIn("no-db", data("import", "lmdb", self.write("no-db", b"x" * 9000), "--out",
                                    self.path("no"), code=65))
        content = read_bytes(self.path("set", "data.mdb"))
        for left in (len(content) // 2, len(content) - 4096):
            error = data("import", "lmdb", self.write("cut", content[:left]), "--out",
                         self.path("no"), code=65)
            self.assertIn(f"cut: has {left} bytes of {len(content)}\n", error)

    def test_tfrecord(self):
        path = self.path("set.tfrecord")
        writer = tfrecord.TFRecordWriter(path)
        expected = []
        for i in range(12):
            writer.write({"image/encoded": (picture(i), "byte"),
                          "image/class/label": (i % 5 + 1, "int"),
                          "image/score": (0.5, "float")})
            expected.append((f"set_tfrecord-{i:08d}",
                             {"jpg": picture(i), "cls": str(i % 5).encode()}))
        writer.close()
        data("import", "tfrecord", path, "--out", self.path("out"), "--first-class", 1)
        self.assertEqual(expected, samples_of(self.path("out")))
        self.write("gz/set.tfrecord", gzip.compress(read_bytes(path)))
        data("import", "tfrecord", self.path("gz/set.tfrecord"), "--out", self.path("gz"),
             "--first-class", 1)
        self.assertEqual(expected, samples_of(self.path("gz")))
        data("import", "tfrecord", path, self.path("gz/set.tfrecord"), "--out", self.path("both"),
             "--first-class", 1)
        self.assertEqual([key for key, _ in expected] +
                         [key.replace("record-", "record-2-") for key, _ in expected],
                         [key for key, _ in samples_of(self.path("both"))])
        self.assertIn("empty: holds no sample", data("import", "tfrecord", self.write("empty", b""),
                                                     "--out", self.path("no"), code=65))
        content = bytearray(read_bytes(path))
        content[500] ^= 1
        damaged = self.write("damaged.tfrecord", bytes(content))
        self.assertIn("damaged.tfrecord: byte 0: a record's checksum is wrong",
                      data("import", "tfrecord", damaged, "--out", self.path("no"), code=65))
        self.assertIn('set.tfrecord: record 0: has no "pixels" with one image',
                      data("import", "tfrecord", path, "--image-field", "pixels", "--out",
                           self.path("no"), code=65))

    def test_names_in_records_are_the_classes(self):
        def imported(*classes):
            """The names in classes.json, and the warnings."""
            writer = tfrecord.TFRecordWriter(self.path("set.tfrecord"))
            for i, (label, name) in enumerate(classes):
                features = {"image/encoded": (picture(i), "byte"), "image/class/label": (label, "int")}
                if name:
                    features["image/class/text"] = (name.encode(), "byte")
                writer.write(features)
            writer.close()
            shutil.rmtree(self.path("out"), ignore_errors=True)
            done = subprocess.run([PROGRAM, "data", "import", "tfrecord", self.path("set.tfrecord"),
                                   "--out", self.path("out"), "--first-class", "1"],
                                  capture_output=True, text=True, timeout=60, check=True)
            names = self.path("out", "classes.json")
            return read_json(names) if os.path.exists(names) else None, done.stderr

        self.assertEqual((["tench, Tinca", "shark"], ""),
                         imported((2, "shark"), (1, "tench, Tinca"), (2, "shark")))
        self.assertEqual((None, ""), imported((1, None), (2, None)))
        for classes in ([(1, "tench"), (3, "shark"), (3, "shark")], [(1, "tench"), (3, "shark"), (2, None)],
                        [(1, "tench"), (2, "shark"), (3, "eel"), (2, "ray")]):
            self.assertEqual((None, 'warning: not every class from 0 to 2 has one "image/class/text": '
                                    "no classes.json is written\n"), imported(*classes))

    def test_idx(self):
        random = numpy.random.default_rng(3)
        images = random.integers(0, 256, (20, 28, 24), dtype=numpy.uint8)
        labels = random.integers(0, 10, 20, dtype=numpy.uint8)
        def idx(array):
            sides = b"".join(side.to_bytes(4, "big") for side in array.shape)
            return bytes([0, 0, 8, array.ndim]) + sides + array.tobytes()
        a = self.write("images.gz", gzip.compress(idx(images)))
        b = self.write("labels", idx(labels))
        data("import", "idx", a, b, "--out", self.path("out"))
        found = samples_of(self.path("out"))
        self.assertEqual([str(label) for label in labels],
                         [fields["cls"].decode() for _, fields in found])
        for image, (_, fields) in zip(images, found):
            pixels = numpy.asarray(Image.open(io.BytesIO(fields["png"])))
            numpy.testing.assert_array_equal(pixels, numpy.stack([image] * 3, axis=2))
        for wrong, text in ((idx(images)[:-1], "ends in item 19 of 20"),
                            (idx(images) + b"x", "has data after its 20 items"),
                            (idx(images[:19]), "19 images and 20 labels"),
                            (b"text", "is not an IDX file"), (b"", "is not an IDX file")):
            error = data("import", "idx", self.write("wrong", wrong), b, "--out", self.path("no"),
                         "--overwrite", code=65)
            self.assertIn(text, error)
        huge = bytes([0, 0, 8, 4]) + b"\xff\xff\xff\xff" * 4 + b"x"
        data("import", "idx", self.write("huge", huge), b, "--out", self.path("no"), code=65)

    def test_a_folder_of_classes(self):
        files = class_folders(self.path("in"), each=4)
        expected = [(os.path.splitext(path)[0], {os.path.splitext(path)[1][1:]: content,
                                                 "cls": str(["cat", "dog", "emu"].index(path[:3])).encode()})
                    for path, content in sorted(files.items())]
        for threads in (1, 3):
            out = self.path(f"out{threads}")
            data("import", "folder", self.path("in"), "--out", out, "--threads", threads)
            self.assertEqual(expected, samples_of(out))
            self.assertEqual(["cat", "dog", "emu"], read_json(os.path.join(out, "classes.json")))
        self.write("in/emu/text.jpg", b"text")
        self.assertIn("text.jpg: its first bytes match no image format",
                      data("import", "folder", self.path("in"), "--out", self.path("no"), code=65))

    def test_compressed_tars(self):
        members = [(f"{i}.{e}", c) for i in range(5)
                   for e, c in (("jpg", picture(i)), ("cls", b"1"), ("json", b"{}"))]
        plain = read_bytes(write_tar(self.path("plain.tar"), members))
        for name, packed in [("a.tar.gz", gzip.compress(plain)), ("b.tar", plain),
                             ("c.tar.xz", lzma.compress(plain)), ("d.tar", bz2.compress(plain)),
                             ("e", zstandard.ZstdCompressor().compress(plain))]:
            path = self.write(name, packed)
            data("import", "tar", path, "--out", self.path(name + ".out"))
            self.assertEqual([f"{i}" for i in range(5)],
                             [key for key, _ in samples_of(self.path(name + ".out"))])
            shard, = glob.glob(self.path(name + ".out", "*.tar"))
            with tarfile.open(shard) as tar:
                self.assertEqual(members, [(m.name, tar.extractfile(m).read()) for m in tar])
        cut = self.write("cut.tar.gz", gzip.compress(plain)[:-5000])
        data("import", "tar", cut, "--out", self.path("no"), code=65)

    def test_tars_by_folder_and_pattern(self):
        for name in ("a", "b"):
            self.write(f"set/{name}.tar", read_bytes(write_tar(self.path("one"), [
                (f"{name}.jpg", picture(1)), (f"{name}.cls", b"1")])))
        for i, source in enumerate((self.path("set"), self.path("set", "{a,b}.tar"))):
            data("import", "tar", source, "--out", self.path(f"out{i}"))
            self.assertEqual(["a", "b"], [key for key, _ in samples_of(self.path(f"out{i}"))])

    def test_samples_that_are_not_for_training_are_kept(self):
        samples = [{"jpg": picture(1), "png": picture(2, kind="PNG"), "cls": b"1"},
                   {"jpg": picture(3), "cls": b"dog"}, {"jpg": picture(4), "cls": b"-1"},
                   {"jpg": picture(5), "cls": b"0"}]
        path = write_tar(self.path("a.tar"), [(f"{i}.{e}", content) for i, sample in enumerate(samples)
                                              for e, content in sample.items()])
        done = subprocess.run([PROGRAM, "data", "import", "tar", path, "--out", self.path("out")],
                              capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("3 of 4 samples are not one image with a class number", done.stderr)
        self.assertNotIn("the first has", done.stderr)  # one is as training takes it
        self.assertEqual(samples, [fields for _, fields in samples_of(self.path("out"))])
        self.assertEqual(["train-000000.tar"], os.listdir(self.path("out")))

    def test_a_tar_that_libarchive_ends_early_is_refused(self):
        """Each of these is clean to libarchive and to Python's tarfile, with samples missing."""
        members = [(f"{i}.{e}", c) for i in range(5) for e, c in (("jpg", picture(i)), ("cls", b"1"))]
        plain = read_bytes(write_tar(self.path("plain.tar"), members))
        third = plain.index(b"2.jpg")
        for name, content, text in (
                ("cut", plain[:third], "ends without the two zero blocks"),
                ("half", plain[:plain.index(b"2.cls")], "ends without the two zero blocks"),
                ("hole", plain[:third] + bytes(512) + plain[third + 512:], "a zeroed header"),
                ("joined", plain + plain, "data after the end marker")):
            for content in (content, gzip.compress(content)):
                with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                    self.assertLessEqual(len(tar.getnames()), 10)
                error = data("import", "tar", self.write(name, content), "--out", self.path("no"),
                             "--overwrite", code=65)
                self.assertIn(text, error)


if __name__ == "__main__":
    unittest.main()
