"""`scaletrain data import`: which flags a kind takes, and what they make of members and labels."""
import os
import subprocess
import unittest

import lmdb
import tfrecord

from tools_support import (PROGRAM, FolderTest, class_folders, data, picture, samples_of,
                           write_tar)

KINDS = ("folder", "idx", "lmdb", "parquet", "tar", "tfrecord")
TAKEN = {"--image-field": ("lmdb", "parquet", "tar", "tfrecord"),
         "--label-field": ("lmdb", "parquet", "tar", "tfrecord"),
         "--first-class": ("idx", "lmdb", "parquet", "tar", "tfrecord"),
         "--prefix-keys": ("lmdb", "tar"),
         "--threads": ("folder",)}


def idx(sides, content):
    return bytes([0, 0, 8, len(sides)]) + b"".join(s.to_bytes(4, "big") for s in sides) + content


class Flags(FolderTest):
    def test_a_flag_that_a_kind_does_not_take_is_refused(self):
        class_folders(self.path("in"), each=1)
        for kind in KINDS:
            for flag, kinds in TAKEN.items():
                if kind in kinds:
                    continue
                value = {"--prefix-keys": []}.get(flag, ["1"])
                self.assertEqual(
                    f"{flag}: does not apply to {kind}\n  it applies to: {', '.join(kinds)}\n",
                    data("import", kind, self.path("in"), "--out", self.path("out"), flag, *value,
                         code=2))
                self.assertFalse(os.path.exists(self.path("out")))

    def test_help_tells_the_kinds(self):
        text = " ".join(data("import", "--help").split())
        for kinds in TAKEN.values():
            self.assertIn(f" {', '.join(kinds)}: ", text)


class FirstClass(FolderTest):
    def imported(self, *arguments):
        data("import", *arguments, "--out", self.path("out"), "--overwrite")
        return samples_of(self.path("out"))

    def refused(self, *arguments):
        return data("import", *arguments, "--out", self.path("no"), code=65)

    def test_idx(self):
        """EMNIST's letters are 1 to 26."""
        images = self.write("images", idx((3, 2, 2), bytes(12)))
        labels = self.write("labels", idx((3,), bytes([1, 26, 2])))
        self.assertEqual([b"0", b"25", b"1"], [fields["cls"] for _, fields in self.imported(
            "idx", images, labels, "--first-class", 1)])
        self.assertEqual(
            f"{labels}: item 0: its label is not a class: 1\n"
            "  --first-class, 2 here, is the lowest label\n",
            self.refused("idx", images, labels, "--first-class", 2))

    def test_tar(self):
        path = write_tar(self.path("a.tar"), [
            ("0.jpg", picture(0)), ("0.cls", b"1\n"), ("1.jpg", picture(1)), ("1.cls", b"5"),
            ("2.jpg", picture(2))])
        self.assertEqual([b"0", b"4", None], [fields.get("cls") for _, fields in self.imported(
            "tar", path, "--first-class", 1)])
        self.assertEqual(
            f"{path}: 0: its label is not a class: \"1\\n\"\n"
            "  --first-class, 2 here, is the lowest label; --label-field names another\n",
            self.refused("tar", path, "--first-class", 2))
        for label, text in ((b"dog", "--label-field names another"), (b"-1", "a sample without a label")):
            path = write_tar(self.path("b.tar"), [("0.jpg", picture(0)), ("0.cls", label)])
            self.assertIn(text, self.refused("tar", path, "--first-class", 1))

    def test_lmdb(self):
        with lmdb.open(self.path("set"), map_size=1 << 20) as environment:
            with environment.begin(write=True) as transaction:
                for i in range(3):
                    transaction.put(f"{i}.in.jpg".encode(), picture(i))
                    transaction.put(f"{i}.cls".encode(), b"%d" % (i + 1))
        self.assertEqual([(str(i), {"jpg": picture(i), "cls": b"%d" % i}) for i in range(3)],
                         self.imported("lmdb", self.path("set"), "--first-class", 1,
                                       "--image-field", "in.jpg"))

    def test_a_text_is_no_class_whatever_is_taken_off(self):
        path = self.path("set.tfrecord")
        writer = tfrecord.TFRecordWriter(path)
        writer.write({"image/encoded": (picture(1), "byte"), "image/class/label": (b"dog", "byte")})
        writer.close()
        self.assertIn('its "image/class/label" is not a class number',
                      self.refused("tfrecord", path, "--first-class", -1))


class ImageField(FolderTest):
    def imported(self, members, *flags):
        path = write_tar(self.path("a.tar"), members)
        done = subprocess.run([PROGRAM, "data", "import", "tar", path, "--out", self.path("out"),
                               "--overwrite", *flags], capture_output=True, text=True, timeout=60,
                              check=True)
        self.assertEqual("", done.stderr)  # every sample is one for training
        return samples_of(self.path("out"))

    def test_the_field_becomes_the_image(self):
        members = [(f"{i}.{e}", c) for i in range(3) for e, c in
                   (("Input.jpg", picture(i)), ("target.jpg", picture(10 + i)), ("cls", b"1"))]
        for name in ("input.jpg", ".input.jpg", "Input.JPG"):
            self.assertEqual([(str(i), {"jpg": picture(i), "target.jpg": picture(10 + i),
                                        "cls": b"1"}) for i in range(3)],
                             self.imported(members, "--image-field", name))
        data("check", self.path("out"))

    def test_its_extension_is_that_of_its_bytes_and_another_image_gives_way(self):
        members = [("0.jpg", picture(1)), ("0.seg.jpg", picture(2, kind="PNG")), ("0.cls", b"1"),
                   ("0.png", picture(3, kind="PNG"))]
        self.assertEqual([("0", {"other.jpg": picture(1), "png": picture(2, kind="PNG"),
                                 "cls": b"1", "other.png": picture(3, kind="PNG")})],
                         self.imported(members, "--image-field", "seg.jpg"))

    def test_the_label_too(self):
        members = [("0.jpg", picture(1)), ("0.cls", b"dog"), ("0.class.txt", b"4\n")]
        self.assertEqual([("0", {"jpg": picture(1), "other.cls": b"dog", "cls": b"3"})],
                         self.imported(members, "--label-field", "class.txt", "--first-class", "1"))

    def test_a_missing_field_is_an_error(self):
        path = write_tar(self.path("b.tar"), [("d/0.jpg", picture(1)), ("d/0.cls", b"1")])
        for flags, text in (
                (["--image-field", "png"], "has no .png\n  --image-field names one of its fields: jpg cls\n"),
                (["--label-field", "txt"], "has no .txt\n  --label-field names one of its fields: jpg cls\n"),
                (["--image-field", "cls"], "its .cls is not in a known image format\n  --image-field names the "
                                           "part of the image's name after the key\n")):
            self.assertEqual(f"{path}: d/0: {text}", data("import", "tar", path, *flags, "--out",
                                                          self.path("no"), code=65))


if __name__ == "__main__":
    unittest.main()
