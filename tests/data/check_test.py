"""`scaletrain data check`: each thing that can be wrong with shards is found and named, exit 65."""
import os
import unittest

from tools_support import (FolderTest, class_folders, data, data_json, picture, read_bytes, read_json,
                           write_tar)

END = 1024  # zero bytes that end a tar


def members(count, first=0):
    result = []
    for i in range(first, first + count):
        result += [(f"{i:04d}.jpg", picture(i)), (f"{i:04d}.cls", str(i % 3).encode())]
    return result


class Check(FolderTest):
    def problems_of(self, shard, *flags):
        """[(key, problem)] of a shard that is wrong."""
        report = data_json("check", shard, *flags, code=65)
        return [(p["key"], p["problem"]) for p in report["folders"][0]["problems"]]

    def wrong(self, *changed):
        """Three sound samples and these members."""
        return self.problems_of(write_tar(self.path("a.tar"), members(3) + list(changed)))

    def test_sound_shards(self):
        write_tar(self.path("a.tar"), members(5))
        write_tar(self.path("b.tar"), members(5, first=5))
        self.write("classes.json", '["x", "y", "z"]')
        report = data_json("check", self.folder)
        self.assertTrue(report["sound"])
        folder, = report["folders"]
        self.assertEqual((10, [], []), (folder["samples"], folder["problems"], folder["warnings"]))
        self.assertIn("10 samples, 0 wrong", data("check", self.path("{a,b}.tar")))

    def test_a_folder_of_pictures_points_to_pack(self):
        class_folders(self.folder, each=1)
        self.assertEqual(f"{self.folder}: has no .tar, .tar.gz, .tgz or .tar.zst file\n  name a folder of "
                         f"shards; scaletrain data pack {self.folder} OUT makes shards from a folder of pictures\n",
                         data("check", self.folder, code=65))

    def test_what_is_wrong_with_samples(self):
        sound = picture(99)
        for changed, expected in [
                ([("k.jpg", sound)], "no label"),
                ([("k.cls", b"1")], "no image"),
                ([("k.txt", b"1")], "no image; no label"),
                ([("k.jpg", sound), ("k.png", sound), ("k.cls", b"1")], "two images"),
                ([("k.jpg", sound), ("k.jpg", sound), ("k.cls", b"1")],
                 ".jpg occurs twice; two images"),
                ([("k.jpg", sound), ("k.cls", b"cat")], 'label "cat" is not a class number'),
                ([("k.jpg", sound), ("k.cls", b"-1")], 'label "-1" is not a class number'),
                ([("k.jpg", sound), ("k.cls", b"")], 'label "" is not a class number'),
                ([("k.jpg", sound), ("k.cls", b"1" * 10_000_000)], "a label of 10000000 bytes"),
                ([("k.jpg", b"text"), ("k.cls", b"1")], "the image is damaged: "),
                ([("k.jpg", sound[:-200]), ("k.cls", b"1")], "the image is damaged: "),
                ([("k.jpg", b""), ("k.cls", b"1")], "the image is damaged: ")]:
            (key, problem), = self.wrong(*changed)
            self.assertEqual("k", key)
            self.assertTrue(problem.startswith(expected), problem)

    def test_labels_are_compared_with_the_classes(self):
        self.write("classes.json", '["x", "y"]')
        shard = write_tar(self.path("a.tar"), members(4))
        self.assertEqual([("0002", "label 2 is not below the 2 classes of classes.json")],
                         self.problems_of(shard))

    def test_keys_that_come_again(self):
        # Sorted by extension, as `tar --sort` with separate folders leaves it.
        pairs = members(3)
        shard = write_tar(self.path("a.tar"), pairs[::2] + pairs[1::2])
        again = "the key is used again after another sample"
        self.assertEqual({("0000", again), ("0001", again), ("0002", again)},
                         {p for p in self.problems_of(shard) if p[1] == again})
        # All commands say the same of it; what can be listed is.
        shard = write_tar(self.path("a.tar"), members(2) + members(1))
        for command in ("index", "stats", "card"):
            self.assertIn(f"{shard}: 0000: {again}", data(command, shard, code=65))
        self.assertEqual(["0000", "0001", "0000"], [line.split("\t")[1] for line in
                                                    data("ls", shard, code=65).splitlines()])
        self.assertEqual([("0000", again)], self.problems_of(shard))
        # In two shards it is a warning: samples are told apart by shard and key.
        write_tar(self.path("b.tar"), members(1))
        write_tar(self.path("a.tar"), members(1))
        folder, = data_json("check", self.folder)["folders"]
        self.assertEqual(["1 keys are in more than one place"], folder["warnings"])

    def test_what_is_wrong_with_a_shard(self):
        path = write_tar(self.path("a.tar"), members(6))
        content = read_bytes(path).rstrip(b"\0")
        content += b"\0" * (-len(content) % 512)
        whole = content + b"\0" * END
        second = content.index(b"0001.jpg")
        for changed, expected in [
                (content, "ends without the two zero blocks"),
                (content + b"\0" * 512, "ends after one of the two zero blocks"),
                (whole[:second + 600], "of which the file holds"),
                (whole[:second + 100], "ends inside a header"),
                (whole[:second], "ends without the two zero blocks"),
                (whole[:second] + b"\0" * 512 + whole[second + 512:], "a zeroed header"),
                (whole[:second + 3] + b"X" + whole[second + 4:], "its checksum is wrong"),
                (whole + whole, "data after the end marker"),
                (whole + b"garbage" * 1000, "data after the end marker"),
                (b"", "the file is empty"),
                (b"\x1f\x8b" + b"x" * 2000, "no tar header: its checksum is wrong")]:
            self.write("a.tar", changed)
            (key, problem), = self.problems_of(path)
            self.assertEqual("", key)
            self.assertIn(expected, problem)
            self.assertTrue(problem.startswith("byte "), problem)

    def test_names_of_another_kind(self):
        evil = [("../../evil.jpg", picture(1)), ("../../evil.cls", b"1"),
                ("\x1b[2J.jpg", picture(2)), ("\x1b[2J.cls", b"x")]
        write_tar(self.path("a.tar"), evil)
        text = data("check", self.path("a.tar"), code=65)
        self.assertIn("\\x1b[2J: label \"x\" is not a class number", text)
        self.assertNotIn("\x1b", text)
        before = sorted(os.listdir(self.folder))
        data("get", "../../evil", self.path("a.tar"), "--out", self.path("got"))
        self.assertEqual(["evil.cls", "evil.jpg"], sorted(os.listdir(self.path("got"))))
        self.assertEqual(before + ["got"], sorted(os.listdir(self.folder)))

    def test_hashes(self):
        shard = write_tar(self.path("a.tar"), members(3))
        data("index", "--hash", shard)
        data("check", shard)
        data("card", shard, "--licence", "CC0")
        data("check", shard)
        self.write("card.json", '{"shards": "a.tar"}')
        self.assertIn("card.json: /shards: is not a list", data("check", shard, code=65))
        self.assertIn("card.json: exists already", data("card", shard, code=2))
        data("card", shard, "--overwrite")
        # A flipped bit in a place that no decoder sees: the padding behind an image.
        content = bytearray(read_bytes(shard))
        place = content.index(b"0000.cls") - 1
        self.assertEqual(0, content[place])
        content[place] = 1
        self.write("a.tar", bytes(content))
        (key, problem), = self.problems_of(shard)
        self.assertEqual("", key)
        self.assertRegex(problem, "^its SHA-256 is [0-9a-f]{64}, and [0-9a-f]{64} was recorded$")

    def test_the_hash_of_the_index_outlives_a_quarantine(self):
        shard = write_tar(self.path("a.tar"), members(3) + [("k.jpg", b"text"), ("k.cls", b"1")])
        data("index", "--hash", shard)
        data("check", "--repair", shard)
        for rebuild in (False, True):
            if rebuild:
                data("index", shard)
            content = read_bytes(shard)
            times = os.stat(shard)
            flipped = bytearray(content)
            flipped[content.index(b"0000.cls") - 1] = 1  # padding behind an image
            self.write("a.tar", bytes(flipped))
            os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))
            (key, problem), = self.problems_of(shard)
            self.assertEqual("", key)
            self.assertIn("was recorded", problem)
            self.write("a.tar", content)
            os.utime(shard, ns=(times.st_atime_ns, times.st_mtime_ns))

    def test_repair_writes_what_is_left_out_then(self):
        write_tar(self.path("a.tar"), members(3) + [("k.jpg", b"text"), ("k.cls", b"1")])
        self.write("b.tar", b"no tar")
        write_tar(self.path("c.tar"), members(2, first=10))
        data("check", self.folder, code=65)
        report = data_json("check", "--repair", self.folder)
        self.assertEqual(2, len(report["folders"][0]["problems"]))
        listed = read_json(self.path("quarantine.json"))
        self.assertEqual(["b.tar"], [entry["shard"] for entry in listed["shards"]])
        self.assertEqual([("a.tar", "k")], [(s["shard"], s["key"]) for s in listed["samples"]])
        self.assertIn("5 samples, 0 wrong; 1 sample and 1 shard more are in quarantine",
                      data("check", self.folder))
        # The tools leave it out, and so does the index.
        self.assertEqual(3 + 2, data_json("index", self.folder)["samples"])
        self.assertEqual(5, data_json("stats", self.folder)["samples"])
        # What is found later is added.
        write_tar(self.path("c.tar"), members(2, first=10) + [("m.jpg", picture(1))])
        data("check", "--repair", self.folder)
        listed = read_json(self.path("quarantine.json"))
        self.assertEqual(["k", "m"], [s["key"] for s in listed["samples"]])


if __name__ == "__main__":
    unittest.main()
