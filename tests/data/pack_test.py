"""`scaletrain data pack`: webdataset, tarfile and Pillow find in the shards what was packed."""
import glob
import hashlib
import io
import os
import subprocess
import tarfile
import time
import unittest

import numpy
import webdataset
from PIL import Image

from tools_support import FolderTest, class_folders, data, data_json, picture, read_bytes, read_json


def shards_of(folder, name="train"):
    return sorted(glob.glob(os.path.join(folder, f"{name}-*.tar")))


def by_webdataset(folder):
    """{key: (label, extension, bytes)} of all shards, by PyPI's webdataset."""
    samples = {}
    for sample in webdataset.WebDataset(shards_of(folder), shardshuffle=False):
        fields = {name: value for name, value in sample.items() if not name.startswith("__")}
        label = int(fields.pop("cls"))
        (extension, content), = fields.items()
        assert sample["__key__"] not in samples
        samples[sample["__key__"]] = (label, extension, content)
    return samples


def digest(folder):
    """SHA-256 by name of every file but the indexes, which hold times."""
    return {os.path.basename(path): hashlib.sha256(read_bytes(path)).hexdigest()
            for path in glob.glob(os.path.join(folder, "*")) if not path.endswith(".idx")}


class Pack(FolderTest):
    def test_a_folder_of_classes(self):
        files = class_folders(self.path("pictures"))
        report = data_json("pack", self.path("pictures"), self.path("out"),
                           "--samples-per-shard", 8)
        self.assertEqual([8, 8, 8, 6], [shard["samples"] for shard in report["shards"]])
        for shard in report["shards"]:
            content = read_bytes(shard["shard"])
            self.assertEqual(shard["bytes"], len(content))
            self.assertEqual(shard["sha256"], hashlib.sha256(content).hexdigest())
        self.assertEqual(["cat", "dog", "emu"], read_json(self.path("out", "classes.json")))
        expected = {}
        for path, content in files.items():
            stem, extension = path.rsplit(".", 1)
            expected[stem] = (["cat", "dog", "emu"].index(path[:3]), extension, content)
        self.assertEqual(expected, by_webdataset(self.path("out")))
        # Order is shuffled; each sample's fields stand together, as tarfile sees it too.
        names = sum((tarfile.open(path).getnames() for path in shards_of(self.path("out"))), [])
        self.assertEqual(60, len(names))
        self.assertNotEqual(sorted(names), names)
        for image, label in zip(names[::2], names[1::2]):
            self.assertEqual(image.rsplit(".", 1)[0] + ".cls", label)
        data("check", self.path("out"))

    def test_bytes_depend_on_the_seed_and_not_on_the_threads(self):
        class_folders(self.path("pictures"))
        def packed(out, *flags):
            data("pack", self.path("pictures"), self.path(out), "--shard-bytes", "12kB",
                 "--resize", 16, *flags)
            return digest(self.path(out))
        one = packed("one", "--threads", 1, "--seed", 7)
        self.assertGreater(len(one), 3)
        self.assertEqual(one, packed("five", "--threads", 5, "--seed", 7))
        self.assertNotEqual(one, packed("other", "--threads", 5, "--seed", 8))

    def test_lists(self):
        for i in range(4):
            self.write(f"images/a.b{i}.jpg", picture(i))
        self.write("list.csv", 'label,path,note\ndog,images/a.b0.jpg,"x, ""y"""\r\n'
                               'cat,images/a.b1.jpg,\n\ncat,"images/a.b2.jpg",z\n')
        data("pack", self.path("list.csv"), self.path("csv"), "--in-file-order")
        found = by_webdataset(self.path("csv"))
        self.assertEqual({"images/a_b0": 1, "images/a_b1": 0, "images/a_b2": 0},
                         {key: value[0] for key, value in found.items()})
        self.write("list.jsonl", '{"path": "images/a.b3.jpg", "label": 2, "more": []}\n'
                                 '{"path": "images/a.b0.jpg", "label": "0"}\n')
        data("pack", self.path("list.jsonl"), self.path("jsonl"), "--in-file-order")
        self.assertEqual([("images/a_b3", 2), ("images/a_b0", 0)],
                         [(k, v[0]) for k, v in by_webdataset(self.path("jsonl")).items()])
        self.assertEqual(["0", "1", "2"], read_json(self.path("jsonl", "classes.json")))

    def test_list_mistakes_are_named(self):
        for text, message in [
                ("path\na.jpg\n", ':1: no column "label"'),
                ("path,label\na.jpg\n", ":2: 1 columns where the first line has 2"),
                ('path,label\n"a.jpg,1\n', ":2: a quote that does not end"),
                ('path,label\n"a"b,1\n', ":2: text after a closing quote"),
                ("path,label\na.jpg,\n", ":2: the label is empty"),
                ("path,label\n", ": lists no sample")]:
            path = self.write("list.csv", text)
            self.assertIn(path + message, data("pack", path, self.path("out"), code=65))
        path = self.write("list.jsonl", '{"path": "a.jpg", "label": 1.5}\n')
        self.assertIn(":1: the label is neither", data("pack", path, self.path("out"), code=65))
        path = self.write("list.csv", "path,label\nabsent.jpg,cat\n")
        self.assertIn("absent.jpg: cannot be read: No such file",
                      data("pack", path, self.path("out"), code=65))
        self.assertEqual([], shards_of(self.path("out")))  # nothing half-written is left
        self.assertEqual([], glob.glob(self.path("out", ".*")))

    def test_labels_are_all_numbers_or_all_names(self):
        path = self.path("list.csv")
        for i in range(3):
            self.write(f"{i}.jpg", picture(i))
        for labels, problem in (
                (["1.0", "10.0", "2.0"], ':2: its label "1.0" is not a whole number from 0 to 9999999'),
                (["10", "-1", "2"], ':3: its label "-1" is not a whole number from 0'),
                (["cat", "2", "dog"], f':3: its label "2" is a number, and that of {path}:2 is a name'),
                (["0", "1", "dog"], f':4: its label "dog" is a name, and that of {path}:2 is a number'),
                (["9999999", "0", "1"], ": 10000000 classes would take 118888893 bytes")):
            self.write("list.csv", "path,label\n" + "".join(f"{i}.jpg,{label}\n"
                                                            for i, label in enumerate(labels)))
            self.assertIn(problem, data("pack", path, self.path("out"), code=65))
            self.assertFalse(glob.glob(self.path("out", "*")))
        self.write("classes.json", '["a", "b", "dog"]')  # which tells what is what
        data("pack", path, self.path("no"), "--classes", self.path("classes.json"), code=65)
        self.write("list.csv", "path,label\n0.jpg,1\n1.jpg,dog\n")
        data("pack", path, self.path("out"), "--classes", self.path("classes.json"))

    def test_a_list_may_name_a_picture_often(self):
        self.write("a.jpg", picture(1))
        self.write("list.csv", "path,label\n" + "a.jpg,0\n" * 30000)
        started = time.monotonic()
        data("pack", self.path("list.csv"), self.path("out"), "--in-file-order")
        self.assertLess(time.monotonic() - started, 30)
        found = [s["__key__"] for s in webdataset.WebDataset(shards_of(self.path("out")),
                                                             shardshuffle=False)]
        self.assertEqual(["a"] + [f"a-{i}" for i in range(2, 30001)], found)

    def test_folders_are_the_classes(self):
        class_folders(self.path("in"), each=2)
        for name in ("cat/a.svg", "cat/deep/b.SVG", "emu/Thumbs.db", "notes", "dog/.hidden"):
            self.write(f"in/{name}", "text")
        report = data_json("pack", self.path("in"), self.path("out"))
        self.assertEqual({".svg": 2, ".db": 1, "": 1}, report["left_alone"])
        for command in (["pack", self.path("in"), self.path("text")],
                        ["import", "folder", self.path("in"), "--out", self.path("imported")]):
            self.assertIn("; these files are not images and are ignored: 1 without extension, 1 .db, 2 .svg\n",
                          data(*command))
        os.symlink(self.path("in"), self.path("in", "dog", "loop"))
        self.assertIn("in/dog/loop: is a link to a folder that contains it\n  remove the link",
                      data("pack", self.path("in"), self.path("no"), code=65))
        os.remove(self.path("in", "dog", "loop"))
        self.write("in/bat/a.svg", "text")
        self.assertIn("in/bat: has no .jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff or .rgb8 file\n"
                      "  a folder source holds one folder of images for each class",
                      data("pack", self.path("in"), self.path("no"), code=65))

    def test_a_folder_of_shards_is_no_folder_of_pictures(self):
        data("synth", self.path("set"), "--samples", 4, "--classes", 2)
        self.assertIn("set: has shards, but no class folder\n  shards need no packing: training reads them as "
                      "they are",
                      data("pack", self.path("set"), self.path("no"), code=65))

    def test_images_are_resized_and_encoded(self):
        self.write("in/a/wide.png", picture(1, 90, 61, "PNG"))
        self.write("in/a/small.png", picture(2, 20, 10, "PNG"))
        for encoding, extension in [("jpeg:95", "jpg"), ("png", "png"), ("raw", "rgb8")]:
            out = self.path(extension)
            data("pack", self.path("in"), out, "--resize", 32, "--reencode", encoding)
            found = by_webdataset(out)
            self.assertEqual({extension}, {value[1] for value in found.values()})
            wide = Image.open(io.BytesIO(picture(1, 90, 61, "PNG")))
            # 90 * 32 / 61 = 47.2; the shorter side is 32.
            expected = numpy.asarray(wide.resize((47, 32), Image.Resampling.BILINEAR), dtype=int)
            content = found["a/wide"][2]
            if extension == "rgb8":
                self.assertEqual(b"sctrgb8\n" + (47).to_bytes(4, "little")
                                 + (32).to_bytes(4, "little"), content[:16])
                ours = numpy.frombuffer(content[16:], dtype=numpy.uint8).reshape(32, 47, 3)
            else:
                ours = numpy.asarray(Image.open(io.BytesIO(content)))
            # JPEG halves the resolution of colour, and these colours change quickly.
            difference = numpy.abs(ours.astype(int) - expected)
            self.assertLessEqual(difference.mean(), 3 if extension == "jpg" else 0)
            if extension == "png":  # never made larger
                small = Image.open(io.BytesIO(found["a/small"][2]))
                self.assertEqual((20, 10), small.size)
            data("check", out)

    def test_extensions_follow_the_bytes_and_keys_stay_unique(self):
        self.write("in/a/x.jpg", picture(1, kind="PNG"))
        self.write("in/a/x.png", picture(2, kind="PNG"))
        self.write("in/a/deep/er/x.JPEG", picture(3))
        data("pack", self.path("in"), self.path("out"), "--in-file-order")
        self.assertEqual({"a/deep/er/x": "jpg", "a/x": "png", "a/x-2": "png"},
                         {k: v[1] for k, v in by_webdataset(self.path("out")).items()})

    def test_nothing_is_overwritten_unasked(self):
        class_folders(self.path("pictures"))
        data("pack", self.path("pictures"), self.path("out"), "--samples-per-shard", 5)
        before = digest(self.path("out"))
        text = data("pack", self.path("pictures"), self.path("out"), code=2)
        self.assertIn("train-000000.tar: exists already", text)
        self.assertEqual(before, digest(self.path("out")))
        data("pack", self.path("pictures"), self.path("out"), "--name", "val")
        self.assertEqual(6, len(shards_of(self.path("out"))))
        data("pack", self.path("pictures"), self.path("out"), "--overwrite")
        self.assertEqual(1, len(shards_of(self.path("out"))))  # no old shard among the new
        self.assertEqual(1, len(shards_of(self.path("out"), "val")))

    def test_old_shards_stay_until_the_new_ones_are_whole(self):
        class_folders(self.path("pictures"))
        data("pack", self.path("pictures"), self.path("out"), "--samples-per-shard", 5)
        before = digest(self.path("out"))
        self.write("pictures/emu/bad.jpg", "no picture")
        overwrite = [self.path("out"), "--overwrite", "--in-file-order", "--samples-per-shard", 5]
        data("pack", self.path("pictures"), *overwrite, code=65)
        data("pack", self.path("picturse"), *overwrite, code=65)
        data("import", "folder", self.path("picturse"), "--out", self.path("out"), "--overwrite",
             code=65)
        self.assertEqual(before, digest(self.path("out")))

    def test_a_command_that_fails_leaves_no_shard(self):
        class_folders(self.path("pictures"))
        self.write("pictures/emu/bad.jpg", "no picture")
        data("pack", self.path("pictures"), self.path("out"), "--in-file-order",
             "--samples-per-shard", 5, code=65)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_temporary_files_of_a_killed_process_are_removed(self):
        class_folders(self.path("pictures"))
        ended = subprocess.Popen(["true"])
        ended.wait()
        left = [self.write(f"out/.{name}.tmp.{ended.pid}{ending}", "half")
                for name in ("train-000000.tar", "val-000000.tar") for ending in ("", ".idx")]
        used = self.write(f"out/.train-000001.tar.tmp.{os.getpid()}", "half")
        data("pack", self.path("pictures"), self.path("out"))
        self.assertEqual([False, False, True, True], [os.path.exists(path) for path in left])
        self.assertTrue(os.path.exists(used))

    def test_classes_are_shared_by_the_shards_of_a_folder(self):
        class_folders(self.path("train"))
        class_folders(self.path("val"), classes=("emu",), each=2)
        data("pack", self.path("train"), self.path("out"))
        data("pack", self.path("val"), self.path("out"), "--name", "val")
        labels = {int(s["cls"]) for s in webdataset.WebDataset(
            shards_of(self.path("out"), "val"), shardshuffle=False)}
        self.assertEqual({2}, labels)
        class_folders(self.path("more"), classes=("yak",), each=2)
        self.assertIn('its class "yak" is not in classes.json',
                      data("pack", self.path("more"), self.path("out"), "--name", "b", code=65))

    def test_bad_images_end_it_or_are_left_out(self):
        class_folders(self.path("in"))
        self.write("in/cat/bad.jpg", picture(5)[:300])
        self.write("in/cat/text.png", "no image")
        for flags in (["--resize", 16], []):
            text = data("pack", self.path("in"), self.path("a"), "--in-file-order", *flags, code=65)
            self.assertIn("bad.jpg" if flags else "text.png", text)
        whole = picture(6, kind="PNG")
        self.write("in/dog/cut.png", whole[:-20])
        self.write("in/emu/flipped.png", whole[:-30] + bytes([whole[-30] ^ 1]) + whole[-29:])
        for flags in ([], ["--resize", 16], ["--reencode", "png"]):  # each is decoded in any case
            out = self.path("b" + "".join(map(str, flags)))
            report = data_json("pack", self.path("in"), out, "--skip-bad", *flags)
            self.assertEqual(30, report["samples"])
            self.assertEqual({"bad.jpg", "text.png", "cut.png", "flipped.png"},
                             {os.path.basename(bad["path"]) for bad in report["skipped"]})
            self.assertEqual(30, len(by_webdataset(out)))
            data("check", out)
        os.remove(self.path("in", "cat", "text.png"))
        data("pack", self.path("in"), self.path("c"))  # files are only copied: nothing is decoded
        data("check", self.path("c"), code=65)

    def test_wrong_flags_are_named(self):
        text = data("pack", ".", self.path("out"), "--resise", "3", code=2)
        self.assertEqual('scaletrain data pack: there is no flag --resise\n  scaletrain data pack '
                         '--help lists the flags; did you mean "--resize"?\n', text)
        self.assertIn('did you mean "pack"?', data("pak", code=2))
        self.assertIn('--shard-bytes: "12 MB" is not a size',
                      data("synth", self.path("out"), "--shard-bytes", "12 MB", code=2))


if __name__ == "__main__":
    unittest.main()
