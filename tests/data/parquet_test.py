"""`scaletrain data import parquet`: what pyarrow wrote is in the shards, as webdataset reads them."""
import datetime
import glob
import json
import os
import shutil
import subprocess
import unittest

import pyarrow
import pyarrow.parquet

from tools_support import (PROGRAM, FolderTest, data, picture, read_bytes, read_json,
                           samples_of)

IMAGE = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])


class Parquet(FolderTest):
    def put(self, name, columns, **how):
        """A file of these columns: arrays, or lists whose types pyarrow chooses."""
        path = self.path(name)
        pyarrow.parquet.write_table(pyarrow.table(columns), path, **how)
        return path

    def imported(self, *arguments):
        shutil.rmtree(self.path("out"), ignore_errors=True)
        data("import", "parquet", *arguments, "--out", self.path("out"))
        return samples_of(self.path("out"))

    def refused(self, *arguments):
        shutil.rmtree(self.path("no"), ignore_errors=True)
        return data("import", "parquet", *arguments, "--out", self.path("no"), code=65)

    def test_images_and_labels_in_every_compression(self):
        pictures = [picture(i, kind="PNG" if i % 2 else "JPEG") for i in range(150)]
        expected = [(f"a_b_parquet-{i:08d}", {"png" if i % 2 else "jpg": content,
                                              "cls": str(i % 7).encode()})
                    for i, content in enumerate(pictures)]
        for compression in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
            path = self.put("a.b.parquet", {
                "image": pyarrow.array(pictures, pyarrow.large_binary()),
                "label": pyarrow.array([i % 7 for i in range(150)], pyarrow.int16())},
                row_group_size=40, compression=compression)
            self.assertEqual(expected, self.imported(path, "--samples-per-shard", 60))
        self.assertEqual(3, len(glob.glob(self.path("out", "*.tar.idx"))))
        data("check", self.path("out"))

    def test_files_of_hugging_face_datasets_are_imported(self):
        """Structs of bytes and path, and the names of the classes, in several files."""
        note = {"info": {"features": {
            "image": {"_type": "Image"},
            "label": {"names": ["cat", "dog", "emu"], "_type": "ClassLabel"}}}}
        paths, expected = [], []
        for part in range(2):
            rows = range(100 * part, 100 * part + 30)
            table = pyarrow.table({
                "image": pyarrow.array([{"bytes": picture(i), "path": f"{i}.jpg"} for i in rows], IMAGE),
                "label": [i % 3 for i in rows]})
            paths.append(self.path(f"train-{part}.parquet"))
            pyarrow.parquet.write_table(
                table.replace_schema_metadata({"huggingface": json.dumps(note)}), paths[-1])
            expected += [(f"train-{part}_parquet-{i - rows[0]:08d}",
                          {"jpg": picture(i), "cls": str(i % 3).encode()}) for i in rows]
        self.assertEqual(expected, self.imported(*paths))
        self.assertEqual(["cat", "dog", "emu"], read_json(self.path("out", "classes.json")))
        data("check", self.path("out"))

    def put_noted(self, labels, names, name="a.parquet"):
        """A file as Hugging Face's datasets write it."""
        table = pyarrow.table({"image": [picture(i) for i in range(len(labels))],
                               "label": pyarrow.array(labels, pyarrow.int64())})
        note = {"info": {"features": {"label": {"names": names, "_type": "ClassLabel"}}}}
        pyarrow.parquet.write_table(
            table.replace_schema_metadata({"huggingface": json.dumps(note)}), self.path(name))
        return self.path(name)

    def test_names_are_shifted_with_the_labels(self):
        path = self.put_noted([1, 2, 3, 1], ["background", "cat", "dog", "emu"])
        self.assertEqual([b"0", b"1", b"2", b"0"], [fields["cls"] for _, fields in self.imported(
            path, "--first-class", 1)])
        self.assertEqual(["cat", "dog", "emu"], read_json(self.path("out", "classes.json")))

    def test_a_first_class_that_does_not_fit_the_labels_is_refused(self):
        noted = self.put_noted([0, 1], ["cat", "dog"])
        named = self.put("names.parquet", {"image": [picture(1)], "label": ["cat"]})
        bare = self.put("bare.parquet", {"image": [picture(1)]})
        for path, first, text in (
                (noted, 2, f'2 leaves none of the 2 classes that "label" of {noted} names\n'
                           "  name the lowest label of the set"),
                (noted, -1, f'-1 would leave the first labels without a name: "label" of {noted} '
                            "names its classes from 0 on\n  leave it out, and remove samples without a label, "
                            "which are -1 in Hugging Face's datasets, from the files"),
                (named, 1, f'the labels of "label" of {named} are names, which are numbered from 0 '
                           "on\n  leave it out"),
                (bare, 1, "no file has a column of labels\n  --label-field names it")):
            self.assertEqual(f"--first-class: {text}\n", data(
                "import", "parquet", path, "--first-class", first, "--out", self.path("no"), code=2))

    def test_a_row_without_a_label_is_refused_alike(self):
        """Hugging Face's -1, and null: no hint leads to a wrong class."""
        for labels, shown, flags in (([0, -1], "-1", []), ([0, None], "null", []),
                                     ([1, -1], "-1", ["--first-class", 1])):
            path = self.put_noted(labels, ["cat", "dog"])
            self.assertEqual(
                f'{path}: row 1: its "label" is not a class: {shown}\n  a sample without a label (null, '
                "or -1 in Hugging Face's datasets) cannot be imported: leave it out of the file; "
                "--label-field names another\n", self.refused(path, *flags))
        path = self.put_noted([1, 0], ["cat", "dog"])
        self.assertEqual(f'{path}: row 1: its "label" is not a class: 0\n  --first-class, 1 here, is the '
                         "lowest label; --label-field names another\n",
                         self.refused(path, "--first-class", 1))

    def test_names_that_differ_in_dots_only(self):
        paths = [self.put(name, {"image": [picture(1)], "label": [0]})
                 for name in ("a.b.parquet", "a_b.parquet")]
        self.assertEqual(["a_b_parquet-00000000", "a_b_parquet-2-00000000"],
                         [key for key, _ in self.imported(*paths)])

    def test_files_of_one_name_in_several_folders(self):
        """As Hive lays them out."""
        paths = []
        for i in range(2):
            os.makedirs(self.path(f"year={i}"))
            paths.append(self.put(f"year={i}/part-0.parquet", {"image": [picture(i)], "label": [i]}))
        self.assertEqual(["part-0_parquet-00000000", "part-0_parquet-2-00000000"],
                         [key for key, _ in self.imported(*paths)])

    def test_labels_that_are_names_are_numbered(self):
        names = ["dog", "ant", "dog", "cat"]
        for labels in (names, pyarrow.array(names).dictionary_encode()):
            path = self.put("a.parquet", {"img": [picture(i) for i in range(4)], "label": labels})
            self.assertEqual([b"2", b"0", b"2", b"1"],
                             [fields["cls"] for _, fields in self.imported(path)])
            self.assertEqual(["ant", "cat", "dog"], read_json(self.path("out", "classes.json")))

    def test_other_columns_are_fields(self):
        path = self.put("a.parquet", {
            "pixels": [picture(1), picture(2)], "number": [11, 12],
            "Caption.EN": ["süß\n", None], "score": [0.5, 2.0], "count": pyarrow.array([2**63 + 1, 0], pyarrow.uint64()),
            "tags": [["a", "b"], []], "box": [{"x": 1, "y": None}, {"x": 2, "y": 3}],
            "mask": [picture(3, kind="PNG"), b"?"], "good": [True, False],
            "day": [datetime.date(2020, 2, 29), None]})
        (_, one), (_, two) = self.imported(path, "--image-field", "pixels", "--label-field", "number",
                                           "--first-class", 10)
        self.assertEqual({
            "jpg": picture(1), "cls": b"1", "caption_en.txt": "süß\n".encode(), "score.json": b"0.5",
            "count.json": b"9223372036854775809", "tags.json": b'["a","b"]',
            "box.json": b'{"x":1,"y":null}', "mask.png": picture(3, kind="PNG"),
            "good.json": b"true", "day.json": b'"2020-02-29"'}, one)
        self.assertEqual({
            "jpg": picture(2), "cls": b"2", "score.json": b"2.0", "count.json": b"0",
            "tags.json": b"[]", "box.json": b'{"x":2,"y":3}', "mask.bin": b"?",
            "good.json": b"false"}, two)
        data("check", self.path("out"))

    def test_what_was_imported_is_checked(self):
        cut = picture(2)[:-200]  # no page of the file has a checksum that would show it
        path = self.put("a.parquet", {"image": [picture(1), cut, cut], "label": [0, 1, 0]})
        done = subprocess.run([PROGRAM, "data", "import", "parquet", path, "--out", self.path("out")],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(65, done.returncode)
        self.assertIn("pages of Parquet without a checksum, as most programs write them, are not "
                      "verified: checking what was imported\n", done.stderr)
        self.assertRegex(done.stderr, r"train-000000.tar: \S+: the image is damaged: .*; 2 of the "
                                      r"imported samples are wrong\n  scaletrain data check lists all")

    def test_text_without_images(self):
        path = self.put("a.parquet", {"text": [f"line {i}" for i in range(5)], "id": range(5)})
        self.assertEqual([{"text.txt": f"line {i}".encode(), "id.json": str(i).encode()}
                          for i in range(5)], [fields for _, fields in self.imported(path)])
        # Nothing to train on here, and so no index.
        self.assertEqual([], glob.glob(self.path("out", "*.idx")))
        self.assertIn("no image", data("check", self.path("out"), code=65))

    def test_errors_name_row_and_column(self):
        sound = {"image": [picture(i) for i in range(9)], "label": [0] * 9}
        path = self.put("a.parquet", sound, write_page_checksum=True, compression="none")
        content = read_bytes(path)
        flipped = bytearray(content)
        flipped[content.index(picture(5)) + 40] ^= 1
        for name, changed in [("cut", content[:-100]), ("text", b"text" * 100), ("empty", b""),
                              ("flipped", bytes(flipped)), ("middle", content[:2000] + content[-900:])]:
            wrong = self.write(name, changed)
            self.assertIn(f"{wrong}: ", self.refused(wrong))
        self.assertIn("absent: ", self.refused(self.path("absent")))
        self.assertIn(f'{path}: has no column "picture"\n  its columns are: image, label',
                      self.refused(path, "--image-field", "picture"))
        for columns, problem in [
                ({"image": [b"no image"], "label": [0]}, 'its "image" is not in a known image format'),
                ({"image": [None], "label": [0]}, 'its "image" has no bytes'),
                ({"image": pyarrow.array([{"bytes": None, "path": "a.jpg"}], IMAGE), "label": [0]},
                 'its "image" has no bytes'),
                ({"image": [picture(1)], "label": [None]}, 'its "label" is not a class: null'),
                ({"image": [picture(1)], "label": [-1]}, 'its "label" is not a class: -1'),
                ({"image": [picture(1)], "label": [1.5]}, 'its "label" is not a class: 1.5'),
                ({"text": [None]}, "holds no value")]:
            path = self.put("wrong.parquet", columns)
            self.assertIn(f"{path}: row 0: {problem}", self.refused(path))
        path = self.put("lists.parquet", {"images": [[picture(1)]]})
        self.assertIn("has bytes inside a list", self.refused(path))
        path = self.put("twice.parquet", {"A": [1], "a": [2]})
        self.assertIn('has two columns "a"', self.refused(path))

    def test_arrow_is_loaded_for_parquet_only(self):
        program = os.path.join(os.path.dirname(PROGRAM), "scaletrain-data")
        linked = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True, timeout=60)
        self.assertNotIn(b"arrow", linked.stdout)
        # Where it was not built, the error says what to do.
        alone = shutil.copy(program, self.path("scaletrain-data"))
        path = self.put("a.parquet", {"text": ["x"]})
        done = subprocess.run([alone, "import", "parquet", path, "--out", self.path("no")],
                              stderr=subprocess.PIPE, check=False, timeout=60)
        self.assertEqual(2, done.returncode)
        self.assertIn(b"libscaletrain_parquet.so could not be opened", done.stderr)
        self.assertIn(b"run scripts/setup.sh, which installs pyarrow", done.stderr)


if __name__ == "__main__":
    unittest.main()
