"""`scaletrain data tokenize`: NumPy reads nanoGPT's and llm.c's layouts; SentencePiece agrees."""
import glob
import json
import os
import pathlib
import unittest

import numpy
import sentencepiece

from tools_support import FolderTest, data, data_json, read_bytes, read_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
END = 256  # of the tokenizer "bytes"


class Tokenize(FolderTest):
    def files(self):
        return sorted(glob.glob(self.path("out", "*.bin")))

    def test_bytes_in_the_layout_of_nanogpt(self):
        texts = ["one\n", "zwei Döner", ""]
        paths = [self.write(f"{i}.txt", text) for i, text in enumerate(texts)]
        report = data_json("tokenize", *paths, "--out", self.path("out"))
        self.assertEqual((3, 18, 257, 256), (report["documents"], report["tokens"],
                                             report["vocab_size"], report["end_of_text"]))
        expected = [t for text in texts for t in (*text.encode(), END)]
        self.assertEqual(expected, numpy.fromfile(self.files()[0], dtype="<u2").tolist())
        self.assertEqual(report, read_json(self.path("out", "train.tokens.json")))

    def test_llmc_in_several_files_and_threads(self):
        texts = [f"document {i} " * i for i in range(40)]
        lines = "\n".join(json.dumps({"text": text, "id": i}) for i, text in enumerate(texts))
        path = self.write("text.jsonl", lines)
        data("tokenize", path, "--out", self.path("out"), "--layout", "llmc", "--tokens-per-file",
             1000, "--threads", 4)
        tokens = []
        for file in self.files():
            header = numpy.fromfile(file, dtype="<i4", count=256)
            part = numpy.fromfile(file, dtype="<u2", offset=1024)
            self.assertEqual((20240520, 1, len(part)), tuple(header[:3]))
            self.assertFalse(header[3:].any())
            tokens += part.tolist()
        self.assertEqual([t for text in texts for t in (*text.encode(), END)], tokens)
        self.assertEqual(-(-len(tokens) // 1000), len(self.files()))

    def test_sentencepiece_models(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        source = self.write("readme.txt", text)
        sentencepiece.SentencePieceTrainer.train(
            input=source, model_prefix=self.path("model"), vocab_size=300, model_type="bpe",
            minloglevel=2)
        processor = sentencepiece.SentencePieceProcessor(model_file=self.path("model.model"))
        data("tokenize", source, "--tokenizer", self.path("model.model"), "--out",
             self.path("out"))
        self.assertEqual(processor.encode(text) + [processor.eos_id()],
                         numpy.fromfile(self.files()[0], dtype="<u2").tolist())
        self.assertIn("is no SentencePiece model", data(
            "tokenize", source, "--tokenizer", source, "--out", self.path("no"), code=65))

    def test_files_are_not_overwritten_unasked(self):
        path = self.write("a.txt", "abc" * 100)
        data("tokenize", path, "--out", self.path("out"), "--tokens-per-file", 100)
        before = [read_bytes(file) for file in self.files()]
        self.assertIn("train-000000.bin: is there already",
                      data("tokenize", path, "--out", self.path("out"), code=2))
        self.assertEqual(before, [read_bytes(file) for file in self.files()])
        data("tokenize", path, self.path("typo.txt"), "--out", self.path("out"), "--overwrite",
             "--tokens-per-file", 100, code=65)
        self.assertEqual(before, [read_bytes(file) for file in self.files()])
        self.assertEqual([], glob.glob(self.path("out", ".*")))
        data("tokenize", path, "--out", self.path("out"), "--name", "val")
        self.assertEqual(301, read_json(self.path("out", "val.tokens.json"))["tokens"])
        os.remove(self.path("out", "val-000000.bin"))
        data("tokenize", path, "--out", self.path("out"), "--overwrite")
        self.assertEqual(["train-000000.bin"], [os.path.basename(f) for f in self.files()])


if __name__ == "__main__":
    unittest.main()
