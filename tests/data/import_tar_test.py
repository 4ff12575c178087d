"""`scaletrain data import tar`: links, and keys that come again."""
import io
import os
import subprocess
import tarfile
import unittest

import lmdb

from tools_support import (PROGRAM, FolderTest, data, data_json, picture, read_bytes, read_json,
                           samples_of, write_tar)


class Labels(FolderTest):
    """Sets whose labels are in a field that is JSON, or in the names of folders."""

    def imported(self, *flags):
        data("import", "tar", self.path("in.tar"), *flags, "--out", self.path("out"), "--overwrite")
        return {key: fields["cls"] for key, fields in samples_of(self.path("out"))}

    def test_a_key_of_a_field_that_is_json(self):
        write_tar(self.path("in.tar"), [
            ("a.jpg", picture(1)), ("a.json", b'{"label": 4}'), ("a.cls", b"9"),
            ("b.jpg", picture(2)), ("b.json", b'{"label": [1, 2], "name": "x"}')])
        self.assertEqual({"a": b"4", "b": b"[1, 2]"}, self.imported("--label-key", "label"))
        self.assertIn(b'"label": 4', dict(samples_of(self.path("out")))["a"]["json"])
        text = data("import", "tar", self.path("in.tar"), "--label-key", "name", "--out",
                    self.path("no"), code=65)
        self.assertIn('in.tar: a: has no class in "name"\n', text)
        self.assertIn("does not apply to folder", data("import", "folder", self.path("in.tar"), "--label-key",
                                                "x", "--out", self.path("no"), code=2))

    def test_the_class_of_a_folder(self):
        write_tar(self.path("in.tar"), [("x/dog/0.jpg", picture(1)), ("cat/0.jpg", picture(2)),
                                        ("dog/1.jpg", picture(3)), ("dog/1.txt", b"text")])
        expected = {"x/dog/0": b"1", "cat/0": b"0", "dog/1": b"1"}
        self.assertEqual(expected, self.imported("--class-from-folder"))
        self.assertEqual(["cat", "dog"], read_json(self.path("out/classes.json")))
        data("check", self.path("out"))
        self.write("classes.json", '["emu", "dog", "cat"]')  # beside the tar: it says the numbers
        data("import", "tar", self.path("in.tar"), "--class-from-folder", "--out", self.path("new"))
        self.assertEqual({"x/dog/0": b"1", "cat/0": b"2", "dog/1": b"1"},
                         {key: fields["cls"] for key, fields in samples_of(self.path("new"))})
        write_tar(self.path("in.tar"), [("0.jpg", picture(1))])
        self.assertIn("in.tar: 0: its folder is not a class", data(
            "import", "tar", self.path("in.tar"), "--class-from-folder", "--out", self.path("no"),
            code=65))


class Fields(FolderTest):
    def test_the_fields_are_named_where_no_sample_is_as_training_takes_it(self):
        write_tar(self.path("in.tar"), [("a.jpg", picture(1)), ("a.json", b"{}")])
        done = subprocess.run([PROGRAM, "data", "import", "tar", self.path("in.tar"), "--out",
                               self.path("out")], capture_output=True, text=True, timeout=60,
                              check=True)
        self.assertEqual(
            "warning: 1 of 1 sample is not one image with a class number: other programs read it, "
            "training here does not\n  the first has .jpg .json: --image-field, --label-field and "
            "--label-key say which is the image, and where its class is\n", done.stderr)


class Links(FolderTest):
    def imported(self, *arguments):
        """(samples, warnings)"""
        done = subprocess.run([PROGRAM, "data", "import", "tar", *arguments, "--out",
                               self.path("out"), "--overwrite"], capture_output=True, text=True,
                              timeout=60, check=True)
        return samples_of(self.path("out")), done.stderr

    def test_hard_links_of_gnu_tar_are_files(self):
        """A label file that many pictures share, and a picture of two names."""
        long = "d" * 90 + "/" + "e" * 90  # a target that no header block holds
        for stem in ("", long + "/"):
            os.makedirs(self.path("in", stem), exist_ok=True)
            for i in range(3):
                self.write(f"in/{stem}{i}.jpg", picture(i))
            os.link(self.path(f"in/{stem}0.jpg"), self.path(f"in/{stem}3.jpg"))
            self.write(f"in/{stem}0.cls", b"7")
            for i in range(1, 4):
                os.link(self.path(f"in/{stem}0.cls"), self.path(f"in/{stem}{i}.cls"))
        for style in ("gnu", "posix", "ustar"):
            names = [] if style == "ustar" else ["./" + long]
            files = [f"{folder}/{i}.{e}" for folder in [".", *names]
                     for i in range(4) for e in ("jpg", "cls")]
            subprocess.run(["tar", f"--format={style}", "-cf", self.path("a.tar"), *files],
                           cwd=self.path("in"), check=True, timeout=60)
            with tarfile.open(self.path("a.tar")) as tar:
                self.assertTrue(any(member.islnk() for member in tar))
            expected = [(f"{folder}/{i}", {"jpg": picture(i % 3), "cls": b"7"})
                        for folder in [".", *names] for i in range(4)]
            data("check", self.path("a.tar"))
            data("index", self.path("a.tar"))
            self.assertEqual((expected, ""), self.imported(self.path("a.tar")))
            data("check", self.path("out"))

    def test_other_links_are_counted(self):
        with tarfile.open(self.path("a.tar"), "w") as tar:
            def add(name, kind, content):
                info = tarfile.TarInfo(name)
                info.type = kind
                if kind == tarfile.REGTYPE:
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
                else:
                    info.linkname = content
                    tar.addfile(info)
            add("0.jpg", tarfile.REGTYPE, picture(0))
            add("0.cls", tarfile.REGTYPE, b"0")
            add("1.jpg", tarfile.REGTYPE, picture(1))
            add("1.cls", tarfile.SYMTYPE, "0.cls")
            add("2.jpg", tarfile.LNKTYPE, "3.jpg")  # it comes later
            add("2.cls", tarfile.LNKTYPE, "nowhere.cls")
            add("3.jpg", tarfile.REGTYPE, picture(3))
            add("3.cls", tarfile.LNKTYPE, "0.cls")
            add("latest", tarfile.SYMTYPE, "3.jpg")  # no part of a sample
        samples, warnings = self.imported(self.path("a.tar"))
        self.assertEqual([("0", {"jpg": picture(0), "cls": b"0"}), ("1", {"jpg": picture(1)}),
                          ("3", {"jpg": picture(3), "cls": b"0"})], samples)
        self.assertIn("warning: 3 links are skipped, because their targets are not earlier files of the same "
                      f"tar; the first: {self.path('a.tar')}: 1.cls -> 0.cls\n", warnings)
        report = data_json("import", "tar", self.path("a.tar"), "--out", self.path("json"))
        self.assertEqual(3, report["lost_links"])


class Keys(FolderTest):
    def setUp(self):
        super().setUp()
        for name in ("a", "b"):
            write_tar(self.path(f"{name}.tar"), [
                (f"./{i:05d}.{e}", c) for i in range(3)
                for e, c in (("jpg", picture(i + ord(name))), ("cls", b"1"))])
        self.tars = [self.path("a.tar"), self.path("b.tar")]

    def test_both_files_of_a_key_are_named(self):
        path = write_tar(self.path("0.tar"), [("x.jpg", picture(1)), ("x.cls", b"1")])
        self.assertEqual(
            f"{self.tars[1]}: ./00000: the key is used again; {self.tars[0]} has it first\n"
            "  if files have the same keys, --prefix-keys puts the file's name before each key\n",
            data("import", "tar", path, *self.tars, "--out", self.path("no"), code=65))

    def test_in_one_file_too(self):
        path = write_tar(self.path("c.tar"), [("0.jpg", picture(0)), ("1.jpg", picture(1)),
                                              ("0.cls", b"1"), ("1.cls", b"1")])
        self.assertEqual(
            f"{path}: 0: the key is used again after another sample\n"
            "  the fields of a key must be consecutive, and keys must be unique: write the file again, sorted "
            "by name\n",
            data("import", "tar", path, "--out", self.path("no"), code=65))

    def test_the_files_name_before_keys(self):
        self.write("more/a.tar", read_bytes(self.tars[0]))
        data("import", "tar", *self.tars, self.path("more/a.tar"), "--out", self.path("out"),
             "--prefix-keys")
        self.assertEqual([f"{name}/{i:05d}" for name in ("a", "b", "a-2") for i in range(3)],
                         [key for key, _ in samples_of(self.path("out"))])
        data("check", self.path("out"))

    def test_repeated_keys_of_lmdb_are_refused(self):
        for name in ("a", "b"):
            with lmdb.open(self.path(name), map_size=1 << 20) as environment:
                with environment.begin(write=True) as transaction:
                    transaction.put(b"0.jpg", picture(ord(name)))
                    transaction.put(b"0.cls", b"0")
        sources = [self.path("a"), self.path("b")]
        self.assertIn(f"{sources[1]}: 0: the key is used again; {sources[0]} has it first",
                      data("import", "lmdb", *sources, "--out", self.path("no"), code=65))
        data("import", "lmdb", *sources, "--out", self.path("out"), "--prefix-keys")
        self.assertEqual(["a/0", "b/0"], [key for key, _ in samples_of(self.path("out"))])


if __name__ == "__main__":
    unittest.main()
