"""The other commands of `scaletrain data`: synth, ls, get, stats, split, card, index."""
import base64
import collections
import glob
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import unittest

import numpy
import webdataset
from PIL import Image

from tools_support import (PROGRAM, FolderTest, class_folders, data, data_json,
                           picture, read_bytes, read_json, write_tar)


def keys_of(shards):
    """{key: (label, image)} by webdataset."""
    return {s["__key__"]: (int(s["cls"]), s.get("jpg") or s.get("png"))
            for s in webdataset.WebDataset(sorted(shards), shardshuffle=False)}


class Synth(FolderTest):
    def test_labelled_shapes(self):
        data("synth", self.path("out"), "--samples", 60, "--classes", 80, "--size", "40x30",
             "--encoding", "png", "--samples-per-shard", 25, "--threads", 3)
        names = read_json(self.path("out", "classes.json"))
        self.assertEqual(80, len(set(names)))
        self.assertEqual(["red-circle", "red-square"], names[:2])
        self.assertEqual("red-circle-x2", names[72])
        found = keys_of(glob.glob(self.path("out", "*.tar")))
        self.assertEqual(60, len(found))
        for i, (label, image) in enumerate(found.values()):
            self.assertEqual(i % 80, label)
            self.assertEqual((40, 30), Image.open(io.BytesIO(image)).size)
        red = numpy.asarray(Image.open(io.BytesIO(found["train-00000000"][1])))
        self.assertGreater((red == (220, 40, 40)).all(axis=2).sum(), 50)  # the circle is there
        self.assertEqual(60, len({image for _, image in found.values()}))
        data("check", self.path("out"))

    def test_fewer_threads_where_the_system_gives_no_more(self):
        shell = 'ulimit -v 1000000; exec "$0" data synth "$1" --samples 50 --threads 1024'
        done = subprocess.run(["bash", "-c", shell, PROGRAM, self.path("out")], timeout=60,
                              env={**os.environ, "MALLOC_ARENA_MAX": "1"}, check=False)
        self.assertIn(done.returncode, (0, 71))  # and it ends

    def test_synth_does_not_depend_on_the_number_of_threads(self):
        hashes = []
        for threads in (1, 4):
            out = self.path(str(threads))
            report = data("synth", out, "--samples", 30, "--threads", threads)
            self.assertIn("drew 30 samples of 10 classes into 1 shard", report)
            hashes.append(hashlib.sha256(read_bytes(f"{out}/train-000000.tar")).digest())
        self.assertEqual(hashes[0], hashes[1])


class LookInto(FolderTest):
    def setUp(self):
        super().setUp()
        self.shard = write_tar(self.path("a.tar"), [
            ("d/1.jpg", picture(1)), ("d/1.cls", b"7\n"), ("d/1.seg.txt", b"hello"),
            ("README", b"no sample"), ("2.cls", b"x")])

    def test_ls(self):
        size = len(picture(1))
        self.assertEqual(f"a.tar\td/1\t7\tjpg:{size} cls:2 seg.txt:5\na.tar\t2\t-\tcls:1\n",
                         data("ls", self.shard))
        lines = [json.loads(line) for line in data("ls", "--json", self.shard).splitlines()]
        self.assertEqual({"shard": self.shard, "key": "d/1", "label": 7,
                          "fields": {"jpg": size, "cls": 2, "seg.txt": 5}}, lines[0])
        self.assertIsNone(lines[1]["label"])
        content = read_bytes(self.shard)
        cut = self.write("cut.tar", content[:content.index(b"2.cls") + 1024])  # no end marker
        self.assertTrue(data("ls", cut, code=65).startswith("cut.tar\td/1\t7\t"))

    def test_get(self):
        self.assertEqual(picture(1), data("get", "d/1", self.shard, text=False))
        self.assertEqual("hello", data("get", "d/1", self.shard, "--field", "seg.txt"))
        data("get", "d/1", self.shard, "--out", self.path("out"))
        files = ["1.cls", "1.jpg", "1.seg.txt"]
        self.assertEqual(files, sorted(os.listdir(self.path("out"))))
        text = data("get", "d/1", self.shard, "--out", self.path("out"), code=2)
        self.assertEqual(f"{self.path('out', '1.jpg')}: exists already\n"
                         "  replace it with --overwrite\n", text)
        report = data_json("get", "d/1", self.shard, "--out", self.path("out"), "--overwrite")
        self.assertEqual((self.shard, "d/1"), (report["shard"], report["key"]))
        self.assertEqual([self.path("out", name) for name in files], sorted(report["files"]))
        self.assertIn("nobody: no sample has this key", data("get", "nobody", self.shard, code=65))
        self.assertIn("has no .wav\n  name one of its fields with --field: jpg cls seg.txt",
                      data("get", "d/1", self.shard, "--field", "wav", code=65))

    def test_damage_behind_the_sample_is_not_met(self):
        members = [(f"{i}.{e}", c) for i in range(3) for e, c in (("jpg", picture(i)), ("cls", b"1"))]
        whole = read_bytes(write_tar(self.path("whole.tar"), members))
        cut = self.write("cut.tar", whole[:whole.index(b"2.jpg") + 700])
        self.assertEqual(picture(0), data("get", "0", cut, text=False))
        data("get", "none", cut, code=65)

    def test_output_that_cannot_be_written_is_an_error(self):
        shell = '"$0" data get d/1 "$1" > /dev/full; echo $?; "$0" data ls "$1" | head -c1'
        done = subprocess.run(["bash", "-c", shell, PROGRAM, self.shard], timeout=60,
                              capture_output=True, text=True, check=False)
        self.assertEqual("74\na", done.stdout)
        self.assertIn("standard output: No space left on device", done.stderr)


class Stats(FolderTest):
    def test_counts_sizes_and_moments_are_those_of_numpy(self):
        files = class_folders(self.path("in"), classes=("<b>", "dog"), each=7)
        data("pack", self.path("in"), self.path("out"), "--samples-per-shard", 4)
        stats = data_json("stats", self.path("out"), "--html", self.path("page.html"),
                          "--threads", 3)
        images = [numpy.asarray(Image.open(io.BytesIO(c)).convert("RGB")) for c in files.values()]
        pixels = numpy.concatenate([image.reshape(-1, 3) for image in images]) / 255
        numpy.testing.assert_allclose(stats["mean"], pixels.mean(axis=0), rtol=1e-9)
        numpy.testing.assert_allclose(stats["deviation"], pixels.std(axis=0), rtol=1e-9)
        self.assertEqual(14, stats["samples"])
        self.assertEqual(sum(map(len, files.values())), stats["image_bytes"])
        self.assertEqual({"jpg": 8, "png": 6}, stats["formats"])
        self.assertEqual({"least": 20, "mean": 23.0, "most": 26}, stats["width"])
        self.assertEqual([("<b>", 7), ("dog", 7)],
                         [(c["name"], c["samples"]) for c in stats["classes"]])
        page = read_bytes(self.path("page.html")).decode()
        self.assertNotIn("<b>", page)  # a class's name is no markup
        thumbnails = re.findall(r"data:image/jpeg;base64,([^\"]+)", page)
        self.assertEqual(14, len(thumbnails))
        self.assertIn("<tr><th>number</th><th>class</th><th>samples</th><th>of the largest class"
                      "</th></tr>\n<tr><td>0</td>", page)
        self.assertIn("<p>14 of 14 samples: the first 48 of each class, in the order of the shards"
                      "</p>", page)
        self.assertEqual((96, 96), Image.open(io.BytesIO(base64.b64decode(thumbnails[0]))).size)
        self.assertIn("page.html: exists already",
                      data("stats", self.path("out"), "--html", self.path("page.html"), code=2))
        data("stats", self.path("out"), "--html", self.path("page.html"), "--overwrite")

    def test_a_page_of_many_classes_says_which_samples_it_shows(self):
        data("synth", self.path("in"), "--samples", 200, "--classes", 100, "--size", 16)
        data("stats", self.path("in"), "--html", self.path("page.html"))
        self.assertIn("<p>96 of 200 samples: the first of each of the 96 classes that come first in "
                      "the shards</p>", read_bytes(self.path("page.html")).decode())


class Split(FolderTest):
    def test_classes_are_divided_alike_and_nothing_is_lost(self):
        data("synth", self.path("in"), "--samples", 200, "--classes", 5, "--size", 16,
             "--samples-per-shard", 70)
        report = data_json("split", self.path("in"), "--out", self.path("out"), "--val", 0.2,
                           "--test", 0.1)
        self.assertEqual(0, report["leaks"])
        before = keys_of(glob.glob(self.path("in", "*.tar")))
        after = {}
        for part, each in [("train", 28), ("val", 8), ("test", 4)]:  # of 40 a class
            found = keys_of(glob.glob(self.path("out", f"{part}-*.tar")))
            counts = collections.Counter(label for label, _ in found.values())
            self.assertEqual({label: each for label in range(5)}, counts)
            after.update(found)
        self.assertEqual(before, after)
        self.assertEqual(read_json(self.path("in", "classes.json")),
                         read_json(self.path("out", "classes.json")))
        parts = [self.path("out", f"{part}-000000.tar") for part in ("train", "val", "test")]
        self.assertIn("0 images in more than one", data("split", "--check", *parts))

    def test_small_classes(self):
        """As many samples in each part as scikit-learn's stratified division gives."""
        for classes, each, shares, expected in ((100, 5, (0.1, 0), (450, 50, 0)),
                                                (50, 4, (0.1, 0.1), (160, 20, 20)),
                                                (7, 3, (0.34, 0.33), (7, 7, 7)),
                                                (10, 10, (0.25, 0.25), (50, 25, 25))):
            members = [(f"{i}.{e}", c) for i in range(classes * each)
                       for e, c in (("jpg", b"%d" % i), ("cls", b"%d" % (i % classes)))]
            write_tar(self.path("a.tar"), members)
            report = data_json("split", self.path("a.tar"), "--out", self.path("out"),
                               "--val", shares[0], "--test", shares[1], "--overwrite")
            self.assertEqual(expected, tuple(report[part]["samples"]
                                             for part in ("train", "val", "test")))
            for part, share in zip(("val", "test"), shares):
                if share == 0:
                    continue
                found = collections.Counter(label for label, _ in keys_of(
                    [self.path("out", f"{part}-000000.tar")]).values())
                counts = [found[label] for label in range(classes)]
                self.assertLessEqual(max(counts) - min(counts), 1)
                self.assertGreaterEqual(min(counts), int(share * each))

    def test_a_part_without_samples_is_refused(self):
        members = [(f"{i}.{e}", c) for i in range(9) for e, c in (("jpg", b"same"), ("cls", b"0"))]
        write_tar(self.path("a.tar"), members)
        self.assertEqual(
            "split: no sample of 9 is left for val\n  samples of one group stay together: use a larger share, "
            "0, or smaller groups\n",
            data("split", self.path("a.tar"), "--out", self.path("out"), code=65))
        self.assertFalse(os.path.exists(self.path("out")))

    def test_groups_stay_together(self):
        members = []
        for i in range(60):
            key = f"{i % 3}/patient{i // 6:02d}_{i}"
            members += [(f"{key}.jpg", picture(i)), (f"{key}.cls", str(i % 3).encode())]
        write_tar(self.path("a.tar"), members)
        data("split", self.path("a.tar"), "--out", self.path("out"), "--val", 0.3, "--group-by",
             "(patient[0-9]+)")
        patients = []
        for part in ("train", "val"):
            found = keys_of([self.path("out", f"{part}-000000.tar")])
            patients.append({re.search("patient[0-9]+", key)[0] for key in found})
        self.assertEqual((7, 3), (len(patients[0]), len(patients[1])))
        self.assertEqual(set(), patients[0] & patients[1])
        self.assertIn('--group-by: "("', data("split", self.path("a.tar"), "--out",
                                              self.path("no"), "--group-by", "(", code=2))

    def test_equal_images_never_part_and_leaks_are_found(self):
        members = []
        for i in range(40):
            members += [(f"{i}.jpg", picture(i % 20)), (f"{i}.cls", b"0")]
        write_tar(self.path("a.tar"), members)
        report = data_json("split", self.path("a.tar"), "--out", self.path("out"), "--val", 0.5)
        self.assertEqual((20, 20, 0), (report["train"]["samples"], report["val"]["samples"],
                                       report["leaks"]))
        write_tar(self.path("b.tar"), [("x.jpg", picture(3)), ("x.cls", b"1")])
        text = data("split", "--check", self.path("a.tar"), self.path("b.tar"), code=65)
        self.assertIn(f"{self.path('b.tar')}: x is also {self.path('a.tar')}: 3\n", text)
        self.assertIn("needs two parts or more to compare", data("split", "--check", self.path("a.tar"), code=2))
        self.assertIn("scaletrain data split: PATH is required\n  scaletrain data split --help lists",
                      data("split", "--check", code=2))


class Classes(FolderTest):
    def test_sets_of_different_classes_do_not_mix(self):
        for name, classes in (("a", '["cat", "dog"]'), ("b", '["dog", "cat"]'), ("c", "")):
            os.makedirs(self.path(name))
            write_tar(self.path(name, f"{name}.tar"), [
                (f"{name}{i}.{e}", c) for i in range(9)
                for e, c in (("jpg", picture(i + ord(name))), ("cls", b"%d" % (i % 2)))])
            if classes:
                self.write(f"{name}/classes.json", classes)
        for command in (["dedup"], ["split"]):
            out = ["--out", self.path("out")]
            text = data(*command, self.path("a"), self.path("b"), *out, code=65)
            self.assertEqual(
                f"{self.path('b/classes.json')}: has other classes than "
                f"{self.path('a/classes.json')}\n  labels must have the same meaning in all parts of a set: use "
                f"parts with the same classes\n", text)
            self.assertFalse(os.path.exists(self.path("out")))
            self.write("out/classes.json", '["x", "y"]')
            text = data(*command, self.path("a"), *out, code=65)
            self.assertIn("out/classes.json: has other classes than the new shards", text)
            self.assertEqual(["classes.json"], os.listdir(self.path("out")))
            os.remove(self.path("out", "classes.json"))
            data(*command, self.path("c"), self.path("a"), *out)
            self.assertEqual(["cat", "dog"], read_json(self.path("out", "classes.json")))
            shutil.rmtree(self.path("out"))
        self.assertIn("has other classes", data("stats", self.path("a"), self.path("b"), code=65))


class Arguments(FolderTest):
    def test_a_shard_that_is_named_twice_is_taken_once(self):
        data("synth", self.path("set"), "--samples", 40, "--size", 8, "--samples-per-shard", 20)
        shard = self.path("set", "train-000000.tar")
        data("index", self.path("set"), shard, self.path("set", ".", "train-{000000,000001}.tar"))
        self.assertEqual(40, data_json("stats", self.path("set"), shard)["samples"])

    def test_braces_in_folders(self):
        for name in ("sep", "seq"):
            data("synth", self.path(name), "--samples", 20, "--size", 8)
        self.assertEqual(40, data_json("stats", self.path("se{p,q}"))["samples"])

    def test_drop_near_needs_near(self):
        self.assertIn("--near", data("dedup", self.folder, "--drop-near", code=2))


class Overwrite(FolderTest):
    def test_a_set_does_not_replace_itself(self):
        out = self.path("set")
        data("synth", out, "--samples", 60, "--classes", 3, "--size", 16, "--samples-per-shard", 20)
        before = {name: read_bytes(os.path.join(out, name)) for name in os.listdir(out)}
        os.symlink(out, self.path("link"))
        first = os.path.join(out, "train-000000.tar")
        for command in (["dedup", out, "--out", out], ["split", out, "--out", out],
                        ["dedup", out, "--out", self.path("link")],
                        ["import", "tar", first, "--out", out]):
            text = data(*command, "--overwrite", code=2)
            self.assertRegex(text, r"^--overwrite: .*/train-000000.tar would be replaced, but this command "
                                   r"reads it\n  choose another folder or --name\n$")
        self.assertEqual(before, {name: read_bytes(os.path.join(out, name))
                                  for name in os.listdir(out)})
        data("dedup", out, "--out", out, "--name", "unique", "--overwrite")
        self.assertTrue(os.path.exists(os.path.join(out, "unique-000000.tar")))


class ProgressBar(FolderTest):
    def test_a_bar_on_a_terminal_and_nothing_elsewhere(self):
        for command, label in ((["synth", self.path("in"), "--samples", "1500", "--size", "128",
                                 "--encoding", "png"], rb"drawing \d+/1500"),
                               (["check", self.path("in")], rb"checking samples \d+"),
                               (["dedup", "--near", "1", self.path("in")], rb"decoding shards 0/1")):
            screen, terminal = os.openpty()
            with subprocess.Popen([PROGRAM, "data", *command, "--threads", "1"], stdout=subprocess.PIPE,
                                  stderr=terminal) as process:
                os.close(terminal)
                shown = b""
                try:
                    while piece := os.read(screen, 4096):
                        shown += piece
                except OSError:
                    pass  # the terminal's other end was closed
                output = process.stdout.read()
            os.close(screen)
            self.assertEqual(0, process.returncode)
            self.assertNotIn(b"\x1b", output)
            self.assertRegex(shown, label)
            self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-100:])  # and takes it away


class Card(FolderTest):
    def test_the_card_tells_what_is_there(self):
        class_folders(self.path("in"))
        packed = data_json("pack", self.path("in"), self.path("out"), "--samples-per-shard", 20)
        data("card", self.path("out"), "--licence", "CC BY 4.0", "--source", "https://example.org",
             "--source", "own pictures", "--description", "animals")
        card = read_json(self.path("out", "card.json"))
        self.assertEqual((1, "out", "CC BY 4.0", ["https://example.org", "own pictures"], 30),
                         (card["version"], card["name"], card["licence"], card["sources"],
                          card["samples"]))
        self.assertEqual([("cat", 10), ("dog", 10), ("emu", 10)],
                         [(c["name"], c["samples"]) for c in card["classes"]])
        self.assertEqual([(s["samples"], s["bytes"], s["sha256"]) for s in packed["shards"]],
                         [(s["samples"], s["bytes"], s["sha256"]) for s in card["shards"]])


class Bench(FolderTest):
    def test_rates_are_the_loaders_own(self):
        data("synth", self.path("out"), "--samples", 200, "--classes", 3, "--size", "64x48")
        recipe = self.write("recipe.json", json.dumps({
            "model": {"name": "mlp", "num_classes": 3}, "steps": 1,
            "optimizer": {"name": "sgd", "lr": 0.1},
            "data": {"train": {"shards": glob.glob(self.path("out", "*.tar")),
                               "augment": ["random_resized_crop", "rand_augment"]},
                     "image_size": 48}}))
        for paths, flags in (([recipe], ()), ([self.path("out")], ("--image-size", 48))):
            found = data_json("bench", *paths, *flags, "--threads", 1, "--seconds", 0.5)
            self.assertEqual(["read", "decode", "augment", "loader", "threads", "limit"], list(found))
            stages = {name: found[name] for name in ("read", "decode", "augment")}
            self.assertEqual(min(stages, key=stages.get), found["limit"])
            # A thread's time for an image is that of its stages, and little else.
            seconds = sum(1 / rate for rate in stages.values())
            self.assertLess(0.4, seconds * found["loader"])
            self.assertLess(seconds * found["loader"], 1.6)

    def test_advice_names_the_limit_and_the_rate_that_a_run_needs(self):
        data("synth", self.path("large"), "--samples", 60, "--classes", 3, "--size", "256x192")
        keys = {"model": {"name": "mlp", "num_classes": 3}, "steps": 1, "optimizer": {"name": "sgd", "lr": 0.1},
                "data": {"train": {"shards": glob.glob(self.path("large", "*.tar")), "augment": ["center_crop"]},
                         "image_size": 32, "threads": 60}}
        recipe = self.write("recipe.json", json.dumps(keys))
        found = data_json("advise", recipe, "--seconds", 0.5)
        self.assertEqual("decode", found["limit"])
        # 1.15 x 32 = 36.8; 256 x 192 / 37^2 = 35.9
        packing = [change for change in found["changes"] if "data pack --resize 37" in change]
        self.assertIn("35.9 times as many as training at 32 needs", packing[0])
        self.assertIn(f"set data.threads to {found['threads']} (the recipe has 60)", found["changes"][0])

        found = data_json("advise", recipe, "--seconds", 0.5, "--images-per-s", 1)
        self.assertEqual(("training", 1), (found["limit"], found["needed_images_per_s"]))

        self.write("run/recipe.json", json.dumps(keys))
        self.write("run/environment.json", json.dumps({"world_size": 4}))
        self.write("run/metrics.jsonl", json.dumps({"event": "train", "samples_per_s": 1000, "data_time": 0.3,
                                                    "compute_time": 0.1}) + "\n")
        # A rank trained on 250 images/s, and computed for a quarter of the time.
        self.assertAlmostEqual(1000, data_json("advise", self.path("run"), "--seconds", 0.5)["needed_images_per_s"])
        text = data("advise", self.path("run"), "--seconds", 0.5)
        self.assertRegex(text, r"(?m)^training +1000 images/s for each rank$")
        self.write("run/metrics.jsonl", "")
        self.assertIn("has no training step yet", data("advise", self.path("run"), "--seconds", 0.5, code=2))


if __name__ == "__main__":
    unittest.main()
