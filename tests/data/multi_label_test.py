"""Shards whose labels are lists of classes go through `scaletrain data`."""
import json
import os
import unittest

from tools_support import FolderTest, data, data_json, picture, read_json, samples_of, write_tar

LABELS = [["dog", "cat"], [], ["emu"], ["cat", "dog"], ["cat"]]


class MultiLabelTest(FolderTest):
    def pack(self):
        with open(self.path("list.jsonl"), "w", encoding="utf-8") as file:
            for i, labels in enumerate(LABELS):
                with open(self.path(f"{i}.jpg"), "wb") as image:
                    image.write(picture(i))
                file.write(json.dumps({"path": f"{i}.jpg", "label": labels}) + "\n")
        data("pack", self.path("list.jsonl"), self.path("out"), "--in-file-order")
        return self.path("out")

    def test_pack_writes_lists_that_the_other_commands_know(self):
        folder = self.pack()
        self.assertEqual(["cat", "dog", "emu"], read_json(os.path.join(folder, "classes.json")))
        texts = [fields["cls"].decode() for _, fields in samples_of(folder)]
        self.assertEqual(["[1, 0]", "[]", "[2]", "[0, 1]", "[0]"], texts)
        data("check", folder)
        self.assertEqual({"cat": 3, "dog": 2, "emu": 1},
                         {row["name"]: row["samples"] for row in data_json("stats", folder)["classes"]})
        data("stats", folder, "--html", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as page:
            self.assertIn("dog, cat: 0", page.read())
        lines = [json.loads(line) for line in data("ls", "--json", folder).splitlines()]
        self.assertEqual([json.loads(text) for text in texts], [line["label"] for line in lines])
        self.assertIn("\t[1,0]\t", data("ls", folder))
        data("card", folder)
        self.assertEqual([3, 2, 1], [row["samples"] for row in
                                     read_json(os.path.join(folder, "card.json"))["classes"]])
        data("split", folder, "--out", self.path("split"), "--val", 0.4)
        for name in os.listdir(folder):
            if name.endswith(".idx"):
                os.remove(os.path.join(folder, name))
        data("index", folder)

    def test_equal_images_with_other_lists_are_a_conflict(self):
        shard = write_tar(self.path("a.tar"), [
            ("1.jpg", picture(1)), ("1.cls", b"[1, 2]"), ("2.jpg", picture(1)), ("2.cls", b"1 2"),
            ("3.jpg", picture(2)), ("3.cls", b"[1]"), ("4.jpg", picture(2)), ("4.cls", b"[1, 2]")])
        found = data_json("dedup", shard)
        self.assertEqual(1, found["label_conflicts"])

    def test_what_is_wrong_with_a_list_is_reported(self):
        for text, problem in ((b"[1, cat]", 'label "[1, cat]" is not a class number'),
                              (b"[1, 0, 1]", 'label "[1, 0, 1]" names class 1 twice: as a multi-hot row'),
                              (b"[2, 1, 2]", 'label "[2, 1, 2]" names class 2 twice'),
                              (b"[0, 3]", "label 3 is not below the 3 classes of classes.json")):
            folder = self.path("wrong")
            os.makedirs(folder, exist_ok=True)
            write_tar(os.path.join(folder, "a.tar"), [("1.jpg", picture(1)), ("1.cls", text)])
            with open(os.path.join(folder, "classes.json"), "w", encoding="utf-8") as file:
                json.dump(["cat", "dog", "emu"], file)
            self.assertIn(problem, data("check", folder, code=65))

    def test_multi_hot_rows_are_no_lists_of_classes(self):
        rows = [b"[0, 1, 0, 0, 1]", b"[0, 0, 0, 0, 0]", b"[1, 0, 0, 0, 0]"]
        shard = write_tar(self.path("a.tar"), [
            (f"{i}.{kind}", content) for i, row in enumerate(rows)
            for kind, content in (("jpg", picture(i)), ("cls", row))])
        for command in (["stats", shard], ["import", "tar", shard, "--out", self.path("no")]):
            self.assertRegex(data(*command, code=65), "its label .*names class 0 twice")
        data("import", "tar", shard, "--multi-hot", "--out", self.path("out"))
        self.assertEqual(["[1, 4]", "[]", "[0]"],
                         [fields["cls"].decode() for _, fields in samples_of(self.path("out"))])
        data("check", self.path("out"))
        self.assertIn("is not made of zeros and ones", data(
            "import", "tar", write_tar(self.path("b.tar"), [("1.jpg", picture(1)), ("1.cls", b"[0, 2]")]),
            "--multi-hot", "--out", self.path("no"), code=65))
        self.write("0.jpg", picture(0))
        self.write("list.jsonl", '{"path": "0.jpg", "label": [0, 1, 0]}\n')
        self.assertIn('list.jsonl:1: its label names class "0" twice',
                      data("pack", self.path("list.jsonl"), self.path("none"), code=65))

    def test_a_list_of_no_class_at_all(self):
        self.assertTrue(self.pack())
        with open(self.path("list.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"path": "0.jpg", "label": []}\n')
        self.assertIn("list.jsonl:1: has no class, and neither has any other sample",
                      data("pack", self.path("list.jsonl"), self.path("none"), code=65))


if __name__ == "__main__":
    unittest.main()
