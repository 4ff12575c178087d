"""scripts/prepare_text.sh with a program in bible's place: chapters as documents, every 20th for
validation, a quick second run, and what it says of a text that is not whole."""
import json
import os
import pathlib
import subprocess
import unittest

import numpy

from tools_support import PROGRAM, FolderTest, read_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAPTERS = 1189

BIBLE = """#!/usr/bin/env bash
echo "$@" >> "{calls}"
for ((chapter = 1; chapter <= {chapters}; ++chapter)); do
  echo "Book$chapter:1 And he said, \\"Verse\\\\one\\" of $chapter."
  echo "Book$chapter:2 Selah."
done
"""


class PrepareText(FolderTest):
    def setUp(self):
        super().setUp()
        os.symlink(ROOT / "scripts", self.path("scripts"))
        os.makedirs(self.path(".deps/bible-kjv/usr/bin"))
        self.write(".deps/bible-kjv/done", "")
        self.put_bible(CHAPTERS)
        # An installed program must not be found: only what the script itself needs is on PATH.
        os.mkdir(self.path("bin"))
        for tool in ("bash", "env", "awk", "dirname", "rm", "mkdir"):
            os.symlink(next(f"{folder}/{tool}" for folder in ("/usr/bin", "/bin")
                            if os.path.exists(f"{folder}/{tool}")), self.path("bin", tool))
        os.symlink(PROGRAM, self.path("bin", "scaletrain"))

    def put_bible(self, chapters):
        path = self.write(".deps/bible-kjv/usr/bin/bible",
                          BIBLE.format(calls=self.path("calls"), chapters=chapters))
        os.chmod(path, 0o755)

    def prepare(self, *arguments, code=0):
        done = subprocess.run(["scripts/prepare_text.sh", *arguments], cwd=self.path(),
                              env=dict(os.environ, PATH=self.path("bin")), timeout=120, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(code, done.returncode, done.stdout)
        return done.stdout

    def documents(self, name):
        with open(self.path("text", name), encoding="ascii") as file:
            return [json.loads(line)["text"] for line in file]

    def test_chapters_are_cut_into_training_and_validation(self):
        self.prepare()
        expected = [f'And he said, "Verse\\one" of {chapter}.\nSelah.'
                    for chapter in range(1, CHAPTERS + 1)]
        self.assertEqual(expected[9::20], self.documents("val.jsonl"))
        self.assertEqual([text for i, text in enumerate(expected) if i % 20 != 9],
                         self.documents("train.jsonl"))
        card = read_json(self.path("text", "val.tokens.json"))
        self.assertEqual(["val-000000.bin"], [file["name"] for file in card["files"]])
        tokens = numpy.fromfile(self.path("text", "val-000000.bin"), dtype="<u2").tolist()
        self.assertEqual([t for text in expected[9::20] for t in (*text.encode(), 256)], tokens)
        self.assertEqual(CHAPTERS - 59, read_json(self.path("text", "train.tokens.json"))["documents"])

    def test_a_second_run_leaves_everything_alone(self):
        self.prepare()
        before = {name: os.stat(self.path("text", name)).st_mtime_ns
                  for name in os.listdir(self.path("text"))}
        self.assertIn("text has its tokens already", self.prepare())
        self.assertEqual(before, {name: os.stat(self.path("text", name)).st_mtime_ns
                                  for name in os.listdir(self.path("text"))})
        os.remove(self.path("text", "val.tokens.json"))
        self.prepare("text", "--layout", "llmc")
        self.assertEqual("llmc", read_json(self.path("text", "val.tokens.json"))["layout"])
        with open(self.path("calls"), encoding="ascii") as file:
            self.assertEqual(1, len(file.readlines()))

    def test_a_text_that_is_not_whole_is_refused(self):
        self.put_bible(CHAPTERS - 1)
        self.assertIn("1188 chapters where 1189 belong", self.prepare(code=1))
        self.assertEqual([], os.listdir(self.path("text")))


if __name__ == "__main__":
    unittest.main()
