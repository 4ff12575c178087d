"""Faults 20 and 21 of shards made to do harm: refused at once, in little memory, nothing written."""
import gzip
import io
import os
import subprocess
import tarfile
import unittest

from tools_support import PROGRAM, FolderTest, picture, write_tar

LIMIT_KB = 1_000_000  # of address space


def header(name, size, kind=tarfile.REGTYPE, **fields):
    """One header block; a size above eleven octal digits is written as GNU does."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


class Hostile(FolderTest):
    def run_limited(self, *arguments):
        """(exit code, standard output and errors) within LIMIT_KB and ten seconds."""
        done = subprocess.run(
            ["bash", "-c", f'ulimit -v {LIMIT_KB}; exec "$@"', "bash", PROGRAM, "data",
             *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10,
            check=False, cwd=self.folder)
        return done.returncode, done.stdout.decode()

    def refused(self, content, text, command="check"):
        shard = self.write("shard.tar", content)
        flags = ["--out", self.path("out")] if command == "import" else []
        code, output = self.run_limited(*([command, "tar"] if flags else [command]), shard, *flags)
        self.assertEqual(65, code, output)
        self.assertIn(text, output)

    def test_sizes_that_are_not_there(self):
        self.refused(header("a.jpg", 1 << 62) + b"x" * 600, "at most 67108864 are allowed")
        self.refused(header("a.jpg", 1 << 40, tarfile.GNUTYPE_SPARSE) + b"\0" * 1024,
                     "is a sparse file")
        self.refused(header("a.jpg", 60 << 20) + b"x" * 600, "of which the file holds 600")
        self.refused(header("pax", 50 << 20, tarfile.XHDTYPE) + b"10 path=x\n" * 5000000,
                     "an extended header ('x') of 52428800 bytes; at most 1048576 are allowed")
        self.refused(header("././@LongLink", 1 << 33, tarfile.GNUTYPE_LONGNAME) + b"x" * 600,
                     "an extended header ('L') of 8589934592 bytes")

    def test_bombs(self):
        zeros = 200 << 20
        bomb = gzip.compress(header("a.jpg", zeros) + bytes(zeros) + bytes(1024), 1)
        self.assertLess(len(bomb), 2 << 20)
        self.refused(bomb, "a.jpg has 209715200 bytes; at most 67108864 are allowed", "import")

    def test_an_idx_file_takes_no_more_memory_than_an_image(self):
        header = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (1400, 1000, 1000))
        images = self.write("images.gz", gzip.compress(header) + gzip.compress(bytes(4 << 20)) * 350)
        labels = self.write("labels", bytes([0, 0, 8, 1]) + (1400).to_bytes(4, "big") + b"12")
        code, output = self.run_limited("import", "idx", images, labels, "--out", self.path("out"))
        self.assertEqual(65, code, output)
        self.assertIn("labels: ends in item 2 of 1400", output)
        for sides in ((1, 1 << 16, 1 << 16), (1, 1 << 31, 1 << 31), (1, 0, 5)):
            header = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in sides)
            self.write("images", header + bytes(1000))
            code, output = self.run_limited("import", "idx", self.path("images"), labels, "--out",
                                            self.path("no"))
            self.assertEqual(65, code, output)
            self.assertIn(f"has items of {sides[1]}x{sides[2]} bytes", output)

    def test_names_and_kinds(self):
        sound = picture(1)
        members = io.BytesIO()
        with tarfile.open(fileobj=members, mode="w", format=tarfile.GNU_FORMAT) as tar:
            def add(name, kind=tarfile.REGTYPE, target="", content=b""):
                info = tarfile.TarInfo(name)
                info.type, info.linkname, info.size = kind, target, len(content)
                tar.addfile(info, io.BytesIO(content))
            for name in ("../../up", "/etc/absolute", "new\nline", "esc\x1b[2J", "n" * 5000):
                add(f"{name}.jpg", content=sound)
                add(f"{name}.cls", content=b"1")
            add("link.jpg", tarfile.SYMTYPE, "/etc/passwd")
            add("hard.jpg", tarfile.LNKTYPE, "/etc/passwd")
            add("fifo.jpg", tarfile.FIFOTYPE)
            add("device.jpg", tarfile.CHRTYPE)
            add("folder.jpg", tarfile.DIRTYPE)
        shard = self.write("shard.tar", members.getvalue())
        before = sorted(os.listdir(self.folder))
        code, output = self.run_limited("check", shard)
        self.assertEqual((0, before), (code, sorted(os.listdir(self.folder))), output)
        self.assertIn("5 samples, 0 wrong", output)
        self.assertIn("5 members are no part of a sample", output)
        code, output = self.run_limited("ls", shard)
        self.assertEqual(0, code)
        self.assertEqual(5, len(output.splitlines()))
        self.assertNotIn("\x1b", output)

    def test_control_characters_of_names_and_texts_are_escaped_on_a_terminal(self):
        key, text = "c1\x9b\udcff", b"one\n\x1b]0;title\x07\xff two"
        members = io.BytesIO()
        with tarfile.open(fileobj=members, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for name, content in ((f"{key}.jpg", picture(1)), (f"{key}.txt", text)):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        shard = self.write("shard.tar", members.getvalue())
        self.assertIn(r"c1\xc2\x9b\xff", self.run_limited("ls", shard)[1])
        self.assertIn(r'"c1\u009b' + "\ufffd", self.run_limited("ls", "--json", shard)[1])
        get = [PROGRAM, "data", "get", "--field", "txt", key, shard]
        self.assertEqual(text, subprocess.run(get, stdout=subprocess.PIPE, timeout=10,
                                              check=True).stdout)
        screen, terminal = os.openpty()
        subprocess.run(get, stdout=terminal, timeout=10, check=True)
        os.close(terminal)
        self.assertEqual(rb"one\r\n\x1b]0;title\x07\xff two".replace(rb"\r\n", b"\r\n"),
                         os.read(screen, 4096))
        os.close(screen)

    def test_placeholders_in_place_of_files_are_named(self):
        """git-lfs pointers and error pages of a server, for every reader of `scaletrain data`."""
        self.write("text.txt", "text")
        out = ["--out", "out"]
        contents = {"a git-lfs pointer": b"version https://git-lfs.github.com/spec/v1\n"
                                         b"oid sha256:4d7a\nsize 12345\n",
                    "an HTML page": b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
                    "an error message of an object store":
                        b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code></Error>'}
        readers = [["check", "label.tar"], ["stats", "label.tar"], ["import", "tar", "label.tar", *out],
                   ["check", "page.tar"], ["check", "a.tar"], ["check", "a.tar.gz"], ["ls", "a.tar"],
                   ["import", "tar", "a.tar", *out], ["import", "tfrecord", "a.tfrecord", *out],
                   ["import", "parquet", "a.parquet", *out], ["import", "idx", "a.idx", "a.idx", *out],
                   ["import", "lmdb", "a.mdb", *out],
                   ["pack", "list.csv", "out"], ["pack", "folder", "out"],
                   ["tokenize", "a.jsonl", *out],
                   *(["tokenize", "text.txt", "--tokenizer", name, *out]
                     for name in ("tokenizer.json", "vocab.json", "a.model"))]
        for name in ("a.tar", "a.tar.gz", "a.tfrecord", "a.parquet", "a.idx", "a.mdb", "list.csv",
                     "folder/class/a.jpg", "a.jsonl", "tokenizer.json", "vocab.json", "a.model"):
            for found, content in contents.items():
                self.write(f"{found}/{name}", content)
        for found, content in contents.items():
            for name, label in (("label", content), ("page", content + b" " * 100_000)):
                write_tar(self.path(found, f"{name}.tar"), [("k.jpg", picture(0)), ("k.cls", label)])
        for found in contents:
            for reader in readers:
                with self.subTest(found=found, reader=reader):
                    code, output = self.run_limited(*(
                        os.path.join(found, word) if os.path.exists(self.path(found, word)) else word
                        for word in reader))
                    self.assertEqual(65, code, output)
                    self.assertIn(f"is {found}, not the file itself", output)

    def test_paths_that_are_not_regular_files_are_refused(self):
        os.mkfifo(self.path("fifo.tar"))
        os.symlink("loop.tar", self.path("loop.tar"))
        for name, text in [("fifo.tar", "not a regular file"), ("/dev/zero", "not a regular file"),
                           ("loop.tar", "ELOOP"), ("absent.tar", "ENOENT")]:
            code, output = self.run_limited("check", name)
            self.assertEqual(65, code)
            self.assertIn(text, output)


if __name__ == "__main__":
    unittest.main()
