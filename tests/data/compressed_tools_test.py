"""`scaletrain data ...` on compressed shards: what it tells of the plain ones, or one clear error."""
import glob
import gzip
import hashlib
import io
import os
import re
import subprocess
import tarfile
import unittest

import zstandard

from tools_support import (PROGRAM, FolderTest, class_folders, data, data_json, picture, read_bytes,
                           read_json, write_tar)

PACKERS = {".tar.gz": gzip.compress, ".tgz": gzip.compress,
           ".tar.zst": zstandard.ZstdCompressor(write_checksum=True).compress}


class Compressed(FolderTest):
    def setUp(self):
        super().setUp()
        self.write("tmp/keep", b"")
        os.environ["TMPDIR"] = self.path("tmp")
        self.addCleanup(os.environ.pop, "TMPDIR")

    def tearDown(self):
        self.assertEqual(["keep"], os.listdir(self.path("tmp")))  # nothing decompressed stays

    def packed(self, name, content):
        """The bytes of a tar as the compressed file NAME."""
        ending = next(e for e in PACKERS if name.endswith(e))
        return self.write(name, PACKERS[ending](content))

    def problem_of(self, path):
        """What is wrong with a whole shard."""
        report = data_json("check", path, code=65)
        (problem,) = report["folders"][0]["problems"]
        self.assertEqual((os.path.basename(path), ""), (problem["shard"], problem["key"]))
        return problem["problem"]


class LikePlain(Compressed):
    def test_every_command_tells_the_same(self):
        class_folders(self.path("in"), each=9)
        data("pack", self.path("in"), self.path("plain"), "--samples-per-shard", 7)
        shards = sorted(glob.glob(self.path("plain", "*.tar")))
        classes = read_bytes(self.path("plain", "classes.json"))
        for ending in (".tar.gz", ".tar.zst"):
            folder = ending[1:]
            self.write(f"{folder}/classes.json", classes)
            for shard in shards:
                stem = os.path.splitext(os.path.basename(shard))[0]
                self.packed(f"{folder}/{stem}{ending}", read_bytes(shard))

            def both(*arguments, flags=()):
                """What is told of the plain shards and of these, without names."""
                return [data(*arguments, self.path(place), *flags).replace(ending, ".tar")
                        .replace(self.path(place), "SET") for place in ("plain", folder)]
            for command in (["ls"], ["ls", "--json"], ["stats", "--json"], ["check"],
                            ["dedup", "--near", 6, "--json"], ["dedup", "--near", 6]):
                with self.subTest(ending, command=command):
                    plain, ours = both(*command)
                    self.assertEqual(plain, ours)
                    self.assertGreater(len(plain), 20)
            for command in ("split", "dedup"):
                for place in ("plain", folder):
                    data(command, self.path(place), "--out", self.path(command + place),
                         "--overwrite")
                for path in glob.glob(self.path(f"{command}plain", "*.tar")):
                    ours = path.replace(f"{command}plain", command + folder)
                    self.assertEqual(read_bytes(path), read_bytes(ours))
            self.assertIn("0 images in more than one", data("split", "--check", *sorted(
                glob.glob(self.path(folder, "*" + ending)))))
            self.assertEqual(*(data("get", "cat/003", self.path(place), text=False)
                               for place in ("plain", folder)))
            self.assertEqual([], glob.glob(self.path(folder, "*.idx")))

    def test_a_card_has_the_hash_of_the_file_as_it_is(self):
        tar = read_bytes(write_tar(self.path("a.tar"), [("x.jpg", picture(1)), ("x.cls", b"0")]))
        path = self.packed("set/a.tar.zst", tar)
        data("card", path)
        (shard,) = read_json(self.path("set", "card.json"))["shards"]
        content = read_bytes(path)
        self.assertEqual({"name": "a.tar.zst", "samples": 1, "bytes": len(content),
                          "sha256": hashlib.sha256(content).hexdigest()}, shard)
        data("check", path)
        self.packed("set/a.tar.zst", tar + bytes(512))
        self.assertRegex(self.problem_of(path), "^its SHA-256 is [0-9a-f]{64}, and ")

    def test_an_index_has_no_place(self):
        path = self.packed("a.tar.gz", b"not looked at")
        self.assertIn(f"{path}: is compressed; only plain tars have an index\n  nothing needs to be done",
                      data("index", path, code=2))
        self.assertIn(f"{path}: is compressed, and compressed shards are read from data.cache\n  name a recipe",
                      data("bench", path, code=2))

    def test_a_tool_that_is_killed_leaves_nothing(self):
        shard = self.packed("a.tar.zst", bytes(800 << 20))
        with subprocess.Popen([PROGRAM, "data", "ls", shard], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            while not any(re.search(r"/tmp/scaletrain\..* \(deleted\)$", file)
                          for file in self.open_files(process)):
                self.assertIsNone(process.poll())
            process.kill()
        # tearDown looks into the folder.

    @staticmethod
    def open_files(process):
        for link in glob.glob(f"/proc/{process.pid}/fd/*"):
            try:
                yield os.readlink(link)
            except OSError:
                pass  # closed since


class Damaged(Compressed):
    def test_each_damage_is_one_finding(self):
        members = [(f"{i}.{e}", c) for i in range(30)
                   for e, c in (("jpg", picture(i)), ("cls", b"1"))]
        tar = read_bytes(write_tar(self.path("plain.tar"), members))
        for ending, pack in PACKERS.items():
            name, whole = "a" + ending, pack(tar)
            flipped = bytearray(whole)
            flipped[len(whole) // 2] ^= 1
            for content, text in [
                    (whole[:len(whole) // 2], "does not decompress: "),
                    (whole[:-9], "does not decompress: "),
                    (bytes(flipped), "does not decompress: "),
                    (tar, "is neither gzip nor zstd"),
                    (b"", "is neither gzip nor zstd"),
                    (pack(tar[:tar.index(b"7.cls")]), "ends without the two zero blocks"),
                    (pack(tar + tar), "data after the end marker"),
                    (pack(b""), "byte 0: the file is empty")]:
                with self.subTest(ending, text=text):
                    self.assertIn(text, self.problem_of(self.write(name, content)))
            for command in ("stats", "ls", "dedup", "card"):
                self.write(name, whole[:-9])
                self.assertIn(f"{self.path(name)}: does not decompress: ",
                              data(command, self.path(name), code=65))

    def test_repaired_samples_are_excluded(self):
        sound = [("x.jpg", picture(1)), ("x.cls", b"0")]
        tar = write_tar(self.path("a.tar"), sound + [("y.jpg", b"no picture"), ("y.cls", b"1")])
        self.packed("set/a.tar.gz", read_bytes(tar))
        self.write("set/b.tgz", b"nothing")
        data("check", self.path("set"), "--repair")
        listed = read_json(self.path("set", "quarantine.json"))
        self.assertEqual((["b.tgz"], [("a.tar.gz", "y")]),
                         ([s["shard"] for s in listed["shards"]],
                          [(s["shard"], s["key"]) for s in listed["samples"]]))
        self.assertEqual(1, data_json("stats", self.path("set"))["samples"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small tmpfs")
    def test_bombs_take_half_of_what_is_free(self):
        os.makedirs(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.path("small")],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("small")], check=True)
        os.environ["TMPDIR"] = self.path("small")
        member = io.BytesIO()
        with tarfile.open(fileobj=member, mode="w") as tar:
            info = tarfile.TarInfo("a.jpg")
            info.size = 48 << 20
            tar.addfile(info, io.BytesIO(bytes(info.size)))
        for ending, pack in PACKERS.items():
            bomb = self.write("bomb" + ending, pack(member.getvalue()))
            self.assertLess(os.path.getsize(bomb), 1 << 20)
            found = data("check", bomb, code=74)
            self.assertRegex(found, r"could not be checked: has more than 3\d{7} bytes decompressed,")
            self.assertIn(f"half of what is free in {self.path('small')}\n  set TMPDIR to a folder with more "
                          f"free space", data("ls", bomb, code=74))
        self.assertEqual([], os.listdir(self.path("small")))


if __name__ == "__main__":
    unittest.main()
