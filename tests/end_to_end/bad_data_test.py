"""Rows 18 to 27 of the fault list in training: bad shards, pictures and labels, and too few of them."""
import io
import json
import math
import pathlib
import tarfile
import unittest

from PIL import Image

from end_to_end import support


def picture(kind="PNG", mode="RGB", size=(16, 16)):
    file = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(file, kind)
    return file.getvalue()


def sample(key, image, label="3", extension="png"):
    return [(f"{key}.{extension}", image), (f"{key}.cls", label.encode())]


def samples(count, first=0):
    return [member for i in range(first, first + count) for member in sample(f"{i:05}", picture())]


def claims_to_be_large(jpeg):
    """The same file with a header of 65500 x 65500 pixels."""
    at = jpeg.index(b"\xff\xc0") + 5
    return jpeg[:at] + (65500).to_bytes(2, "big") * 2 + jpeg[at + 4:]


class BadDataTest(support.RunTestCase):
    def write(self, name, members):
        path = self.folder / "set" / name
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for member, content in members:
                info = tarfile.TarInfo(member)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        return path

    def launch(self, train, expect=0, ranks=2, **data):
        """A few steps, and an evaluation of the same shards: its record, or what the run says on
        its way out."""
        path = self.recipe(data={"train": {"shards": str(train)}, "val": {"shards": str(train)},
                                 "image_size": 16, **data}, steps=3, batch={"per_device": 4},
                           output=str(self.folder / f"run-{len(list(self.folder.iterdir()))}"))
        result = self.run_scaletrain("launch", "--nproc", ranks, path, expect=expect, timeout=120)
        self.assertNotIn("terminate called", result.stderr)
        self.assertNotIn("\x1b", result.stdout + result.stderr)
        if expect:
            return result.stderr
        self.run = json.loads(path.read_text())["output"]
        return support.records(self.run, "eval")[-1]

    def test_what_was_put_into_quarantine_is_left_out(self):
        self.write("a.tar", samples(30))
        cut = self.write("b.tar", samples(10, 30))
        content = cut.read_bytes()
        cut.write_bytes(content[:content.index(b"00035.cls")])  # after an image, before its label
        self.write("c.tar", samples(10, 40) + [("alone.png", picture())] + sample("x", b"text"))
        shards = str(self.folder / "set/{a,b,c}.tar")
        self.assertIn("b.tar: byte", self.launch(shards, expect=65))
        self.run_scaletrain("data", "check", self.folder / "set", expect=65)
        self.run_scaletrain("data", "check", "--repair", self.folder / "set")
        self.assertEqual(40, self.launch(shards)["count"])

    def test_what_is_wrong_with_a_shard_ends_the_run(self):
        sound = samples(20) + sample("x", picture()) + samples(20, 20)
        whole = self.write("a.tar", sound).read_bytes()
        at = whole.index(b"x.png")
        end = len(whole.rstrip(b"\0")) + 511 & ~511
        for name, content, text in (
                ("header", whole[:at] + b"y" + whole[at + 1:], "its checksum is wrong"),
                ("hole", whole[:at] + bytes(512) + whole[at + 512:], "a zeroed header"),
                ("end", whole[:end], "ends without the two zero blocks"),
                ("half", whole[:whole.index(b"x.cls")], "ends without the two zero blocks"),
                ("tail", whole + b"garbage" * 200, "data after the end marker"),
                ("sorted", samples(40)[::2] + samples(40)[1::2], "the key is used again"),
                ("twice", sound + sample("z", picture()) + [("z.png", picture())], "occurs twice"),
                ("alone", sound + [("z.png", picture())], "a.tar: z: has no label"),
                ("other", sound + [("z.wav", b""), ("z.cls", b"1")], "a.tar: z: has no image"),
                ("large", sound + [("z.cls", b"1"), ("z.png", bytes((64 << 20) + 1))],
                 "z.png has 67108865 bytes; at most 67108864 are allowed")):
            with self.subTest(name):
                if isinstance(content, bytes):
                    (self.folder / "set/a.tar").write_bytes(content)
                else:
                    self.write("a.tar", content)
                error = self.launch(self.folder / "set/a.tar", expect=65, ranks=1)
                self.assertIn("a.tar: ", error)
                self.assertIn(text, error)

    def test_names_that_reach_out(self):
        names = ["../../up", "/etc/absolute", "new\nline", "esc\x1b[2J", "n" * 90]
        shard = self.write("a.tar", samples(40) + [
            member for name in names for member in sample(name, b"text")])
        record = self.launch(shard, bad_samples={"policy": "skip", "max_rate": 1})
        self.assertEqual((40, 5), (record["count"], record["skipped"]))
        for path in (self.folder.parent, self.folder, pathlib.Path("/etc")):
            self.assertEqual([], [*path.glob("up.*"), *path.glob("absolute.*")])
        listed = {json.loads(line)["key"] for path in pathlib.Path(self.run).glob("bad_samples/*.jsonl")
                  for line in path.read_text().splitlines()}
        self.assertEqual(set(names), listed)

    def test_pictures_of_every_kind(self):
        jpeg = picture("JPEG", size=(60, 40))
        sound = (sample("cmyk", picture("JPEG", "CMYK"), extension="jpg")
                 + sample("grey", picture("JPEG", "L"), extension="jpg")
                 + sample("dot", picture("JPEG", size=(1, 1)), extension="jpg")
                 + sample("point", picture(size=(1, 1)))
                 + sample("wide", picture("JPEG", size=(65500, 1)), extension="jpg")
                 + sample("misnamed", picture("PNG"), extension="jpg")
                 + sample("alpha", picture(mode="RGBA")) + sample("bits", picture(mode="I;16")))
        bad = (sample("cut", jpeg[:-300], extension="jpg")
               + sample("large", claims_to_be_large(jpeg), extension="jpg")
               + sample("damaged", picture()[:30] + bytes(20)) + sample("empty", b"")
               + sample("text", b"<html>", extension="jpg"))
        shard = self.write("a.tar", samples(40) + sound + bad)
        record = self.launch(shard, bad_samples={"policy": "skip", "max_rate": 1})
        self.assertEqual((40 + 8, 5), (record["count"], record["skipped"]))
        for train in support.records(self.run, "train"):
            self.assertTrue(math.isfinite(train["loss"]))
            self.assertLess(train["memory_bytes"], 2 << 30)

    def test_a_validation_set_without_a_usable_sample_is_an_error(self):
        train = self.write("a.tar", samples(40))
        val = self.write("b.tar", sample("x", b"text") + sample("y", b""))
        error = self.launch(train, expect=65, ranks=2, val={"shards": str(val)},
                            bad_samples={"policy": "skip", "max_rate": 1})
        self.assertIn("/data/val: none of its 2 samples can be used", error)

    def test_what_is_wrong_with_a_sample_ends_the_run(self):
        for name, image, label, ranks, text in (
                ("word", picture(), "cat", 1, ""), ("negative", picture(), "-1", 1, ""),
                ("empty", picture(), "", 1, ""), ("long", picture(), "1" * 10_000_000, 1, ""),
                ("range", picture(), "10", 2, "label 10 is not in 0..9"),
                ("image", picture()[:30] + bytes(20), "3", 2, "the image does not decode")):
            with self.subTest(name):
                self.write("a.tar", samples(40) + sample("wrong", image, label))
                error = self.launch(self.folder / "set/a.tar", expect=65, ranks=ranks)
                self.assertIn("a.tar: wrong", error)
                self.assertIn(text, error)
                self.assertLess(len(error), 10_000)

    def test_fewer_shards_than_ranks(self):
        shard = self.write("a.tar", samples(40))
        self.assertEqual(40, self.launch(shard, ranks=3)["count"])
        self.assertEqual(40, self.launch(shard, ranks=3, order="streamed", lanes=3)["count"])


if __name__ == "__main__":
    unittest.main()
