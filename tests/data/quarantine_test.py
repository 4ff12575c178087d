"""quarantine.json over time: what is wrong now is in it, and nothing that only the machine is to blame
for; what it leaves out is left out by every tool, and counted."""
import gzip
import json
import os
import subprocess
import unittest

from tools_support import (PROGRAM, FolderTest, data, data_json, picture, read_bytes, read_json,
                           write_tar)


def members(count, first=0):
    result = []
    for i in range(first, first + count):
        result += [(f"{i:04d}.jpg", picture(i)), (f"{i:04d}.cls", str(i % 3).encode())]
    return result


def both(*arguments, code=0, env=None):
    """(standard output, standard error) after the exit code was compared."""
    done = subprocess.run([PROGRAM, "data", *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, check=False, env={**os.environ, **(env or {})})
    if done.returncode != code:
        raise AssertionError(f"exit {done.returncode}, not {code}: {arguments}\n{done.stdout}\n"
                             f"{done.stderr}")
    return done.stdout, done.stderr


class QuarantineTest(FolderTest):
    def shard(self, name, count=3, first=0, also=()):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        return write_tar(self.path(name), members(count, first) + list(also))

    def listed(self):
        """The places in quarantine.json."""
        found = read_json(self.path("quarantine.json"))
        return [(s["shard"], s.get("key", "")) for s in found["shards"] + found["samples"]]

    def check(self, *arguments, code=0):
        """The report of the one folder."""
        report = data_json("check", *arguments, code=code)
        self.assertEqual(code == 0, report["sound"])
        folder, = report["folders"]
        return folder

    def cut(self, name):
        content = read_bytes(self.path(name))
        self.write(name, content[:content.index(b"0001.jpg") + 600])


class MachinesFault(QuarantineTest):
    """What is wrong with the machine is told apart, and never listed."""

    def test_a_shard_that_is_not_there(self):
        self.shard("a.tar", also=[("k.jpg", b"text"), ("k.cls", b"1")])
        os.symlink(self.path("gone"), self.path("c.tar"))
        os.symlink("d.tar", self.path("d.tar"))
        shards = self.path("{a,b,c,d}.tar")
        folder = self.check("--repair", shards, code=65)
        self.assertEqual(["k"], [p["key"] for p in folder["problems"]])
        absent = "No such file or directory (ENOENT)"
        self.assertEqual([("b.tar", absent), ("c.tar", absent),
                          ("d.tar", "Too many levels of symbolic links (ELOOP)")],
                         [(s["shard"], s["problem"]) for s in folder["unchecked"]])
        self.assertEqual([("a.tar", "k")], self.listed())
        text = data("check", shards, code=65)
        self.assertIn(f"{self.path('b.tar')}: could not be checked: {absent}\n", text)
        self.assertIn("3 samples, 0 wrong; 1 sample and 0 shards more are in quarantine and left "
                      "out; 3 shards could not be checked\n", text)

    def test_nowhere_to_decompress(self):
        plain = read_bytes(self.shard("a.tar"))
        self.write("set/a.tar", plain)
        self.write("set/b.tar.gz", gzip.compress(plain))
        nowhere = {"TMPDIR": self.path("nowhere")}
        text, _ = both("check", "--repair", self.path("set"), code=74, env=nowhere)
        self.assertIn("b.tar.gz: could not be checked: TMPDIR: ", text)
        self.assertIn("\n  set TMPDIR to a folder with more free space\n", text)
        self.assertEqual(["a.tar", "b.tar.gz"], sorted(os.listdir(self.path("set"))))
        # What is wrong is told before what may pass.
        self.shard("set/c.tar", also=[("k.cls", b"1")])
        both("check", self.path("set"), code=65, env=nowhere)
        both("check", "--repair", self.path("set"), code=74, env=nowhere)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small tmpfs")
    def test_too_little_room_to_decompress(self):
        os.makedirs(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", self.path("small")],
                       check=True)
        self.addCleanup(subprocess.run, ["umount", self.path("small")], check=True)
        plain = read_bytes(self.shard("a.tar", 2, also=[("big.txt", bytes(3 << 20))]))
        shard = self.write("set/a.tar.gz", gzip.compress(plain))
        small = {"TMPDIR": self.path("small")}
        text, _ = both("check", "--repair", shard, code=74, env=small)
        self.assertRegex(text, r"a.tar.gz: could not be checked: has more than \d+ bytes decompressed,"
                               f" half of what is free in {self.path('small')}\n")
        self.assertEqual(["a.tar.gz"], os.listdir(self.path("set")))
        both("stats", shard, code=74, env=small)

    def test_entries_of_what_could_not_be_checked_stay(self):
        self.write("a.tar", b"no tar")
        self.shard("b.tar", also=[("k.cls", b"1")])
        self.shard("c.tar", 2)
        shards = self.path("{a,b,c}.tar")
        data("check", "--repair", shards)
        os.remove(self.path("a.tar"))
        os.rename(self.path("b.tar"), self.path("elsewhere"))
        # Training does not open a.tar, so it may be gone; b.tar it does.
        folder = self.check("--repair", shards, code=65)
        self.assertEqual(["b.tar"], [s["shard"] for s in folder["unchecked"]])
        self.assertEqual([("a.tar", ""), ("b.tar", "k")], self.listed())
        self.assertEqual({"shards": 1, "samples": 1}, folder["quarantined"])
        self.assertEqual(["quarantine.json names 2 shards that are not there: a.tar, b.tar"],
                         folder["warnings"])


class OverTime(QuarantineTest):
    def test_check_counts_the_samples_that_training_sees(self):
        self.shard("a.tar", 4, also=[("k.jpg", b"text"), ("k.cls", b"1")])
        self.shard("b.tar", 5, first=10)
        self.write("c.tar", b"no tar")
        folder = self.check(self.folder, code=65)
        self.assertEqual((4 + 1 + 5, {"shards": 0, "samples": 0}),
                         (folder["samples"], folder["quarantined"]))
        text = data("check", "--repair", self.folder)
        self.assertIn("9 samples, 2 wrong; quarantine.json was written; 1 sample and 1 shard more are "
                      "in quarantine and left out\n", text)
        folder = self.check(self.folder)
        self.assertEqual((9, {"shards": 1, "samples": 1}, [], []),
                         (folder["samples"], folder["quarantined"], folder["problems"],
                          folder["stale"]))
        self.assertEqual(9, data_json("stats", self.folder)["samples"])
        # A key that comes twice is left out twice.
        self.shard("b.tar", 5, first=10, also=[("0010.jpg", picture(1)), ("0010.cls", b"1")])
        folder = self.check("--repair", self.folder)
        self.assertEqual((8, {"shards": 1, "samples": 3}), (folder["samples"], folder["quarantined"]))
        self.assertEqual(8, data_json("stats", self.folder)["samples"])

    def test_entries_of_samples_that_are_good_again_are_reported_and_removed(self):
        whole = read_bytes(self.shard("a.tar", 4))
        self.cut("a.tar")
        self.shard("b.tar", 2, first=10, also=[("k.jpg", b"text"), ("k.cls", b"1"), ("l.cls", b"1")])
        data("check", "--repair", self.folder)
        self.assertEqual([("a.tar", ""), ("b.tar", "k"), ("b.tar", "l")], self.listed())
        before = read_bytes(self.path("quarantine.json"))
        self.write("a.tar", whole)
        self.shard("b.tar", 2, first=10, also=[("k.jpg", picture(9)), ("k.cls", b"1"),
                                               ("l.cls", b"1")])
        folder = self.check(self.folder)
        self.assertEqual(2, folder["samples"])
        self.assertEqual([("a.tar", ""), ("b.tar", "k")],
                         [(s["shard"], s["key"]) for s in folder["stale"]])
        self.assertEqual(
            ["2 entries of quarantine.json name what is sound now, or gone, and leave it out: "
             "scaletrain data check --repair drops them"], folder["warnings"])
        self.assertEqual(before, read_bytes(self.path("quarantine.json")))
        # Without decoding nobody knows: nothing is dropped.
        folder = self.check("--repair", "--no-decode", self.folder)
        self.assertEqual([], folder["stale"])
        self.assertEqual(before, read_bytes(self.path("quarantine.json")))
        text = data("check", "--repair", self.folder)
        self.assertIn("7 samples, 0 wrong; quarantine.json was written, 2 entries dropped; 1 sample and "
                      "0 shards more are in quarantine and left out\n", text)
        self.assertEqual([("b.tar", "l")], self.listed())
        # The last one: no list is left.
        self.shard("b.tar", 2, first=10)
        self.assertIn("6 samples, 0 wrong; quarantine.json was removed, 1 entry dropped\n",
                      data("check", "--repair", self.folder))
        self.assertEqual(["a.tar", "b.tar"], sorted(os.listdir(self.folder)))
        self.assertIn("6 samples, 0 wrong\n", data("check", "--repair", self.folder))

    def test_entries_of_other_shards_stay(self):
        for name in ("a.tar", "b.tar"):
            self.shard(name, also=[("k.cls", b"1")])
        data("check", "--repair", self.folder)
        self.shard("a.tar")
        self.shard("b.tar")
        data("check", "--repair", self.path("a.tar"))
        self.assertEqual([("b.tar", "k")], self.listed())
        os.remove(self.path("b.tar"))
        text = data("check", "--repair", self.folder)
        self.assertIn("warning: quarantine.json names 1 shard that is not there: b.tar\n", text)
        self.assertEqual([("b.tar", "k")], self.listed())

    def test_an_unchanged_list_is_not_written_again(self):
        self.shard("a.tar", also=[("k.cls", b"1")])
        data("check", "--repair", self.folder)
        before = os.stat(self.path("quarantine.json"))
        self.assertFalse(self.check("--repair", self.folder)["rewritten"])
        after = os.stat(self.path("quarantine.json"))
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))

    def test_a_set_of_which_nothing_is_left(self):
        self.write("a.tar", b"no tar")
        folder = self.check("--repair", self.folder)
        self.assertEqual((0, ["everything is in quarantine: training refuses an empty set"]),
                         (folder["samples"], folder["warnings"]))

    def test_a_damaged_list_is_refused_by_a_repair_too(self):
        self.shard("a.tar")
        self.write("quarantine.json", '{"version": 1, "shards": {}, "samples": []}')
        self.assertIn("remove the file, then write it again", data("check", "--repair", self.folder,
                                                                   code=65))

    def test_many_problems_take_few_lines(self):
        self.write("classes.json", '["x"]')
        self.shard("a.tar", 90)
        lines = data("check", self.folder, code=65).splitlines()
        self.assertEqual(20 + 2, len(lines))
        self.assertEqual(f"{self.folder}: and 40 more; --json lists all", lines[20])
        self.assertIn("90 samples, 60 wrong", lines[21])
        self.assertEqual(60, len(self.check(self.folder, code=65)["problems"]))


class LeftOut(QuarantineTest):
    """Every tool leaves out what is listed, and says how many."""

    def setUp(self):
        super().setUp()
        self.shard("set/a.tar", 3)
        self.shard("set/b.tar", 2, first=10, also=[("k.jpg", b"text"), ("k.cls", b"1")])
        self.shard("set/c.tar", 2, first=20)
        self.cut("set/a.tar")
        data("check", "--repair", self.path("set"))
        self.told = "warning: 1 shard and 1 sample more are excluded by quarantine.json\n"

    def test_ls(self):
        text, said = both("ls", self.path("set"))
        self.assertEqual(["0010", "0011", "0020", "0021"],
                         [line.split("\t")[1] for line in text.splitlines()])
        self.assertEqual(self.told, said)

    def test_get(self):
        self.assertEqual(picture(20), data("get", "0020", self.path("set"), text=False))
        _, said = both("get", "k", self.path("set"), code=65)
        self.assertIn(f"{self.path('set', 'b.tar')}: k: is excluded by quarantine.json\n", said)
        # The first that is not left out.
        self.shard("set/d.tar", 1, first=30, also=[("k.jpg", picture(5)), ("k.cls", b"1")])
        self.assertEqual(picture(5), data("get", "k", self.path("set"), text=False))

    def test_import_of_tars(self):
        self.write("set/classes.json", '["x", "y", "z"]')
        _, said = both("import", "tar", self.path("set"), "--out", self.path("out"))
        self.assertIn(self.told, said)
        self.assertEqual(["0010", "0011", "0020", "0021"],
                         [line.split("\t")[1] for line in data("ls", self.path("out")).splitlines()])
        self.assertEqual(["x", "y", "z"], read_json(self.path("out", "classes.json")))

    def test_classes_of_tars_from_several_folders(self):
        self.write("set/classes.json", '["x", "y", "z"]')
        self.shard("more/d.tar", 1, first=30)
        sources = [self.path("set"), self.path("more", "d.tar")]
        data("import", "tar", *sources, "--out", self.path("out"))  # one has none
        self.assertEqual(["x", "y", "z"], read_json(self.path("out", "classes.json")))
        self.write("more/classes.json", json.dumps(["z", "y", "x"]))
        error = data("import", "tar", *sources, "--out", self.path("no"), code=65)
        self.assertIn(f"{self.path('more', 'classes.json')}: has other classes than "
                      f"{self.path('set', 'classes.json')}\n", error)
        # What is taken off the labels is taken off the names.
        self.shard("one/a.tar", 0, also=[("a.jpg", picture(1)), ("a.cls", b"1")])
        self.write("one/classes.json", '["nothing", "cat"]')
        data("import", "tar", self.path("one"), "--first-class", 1, "--out", self.path("cats"))
        self.assertEqual(["cat"], read_json(self.path("cats", "classes.json")))


if __name__ == "__main__":
    unittest.main()
