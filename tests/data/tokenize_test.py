"""`scaletrain data tokenize`: NumPy reads nanoGPT's and llm.c's layouts; SentencePiece agrees."""
import glob
import json
import os
import pathlib
import unittest

import numpy
import sentencepiece

from tools_support import FolderTest, back_to_text, data, data_json, read_bytes, read_json

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

    def test_the_card_counts_the_bytes_of_text_in_each_file(self):
        texts = ["a" * 30, "b" * 45, ""]
        paths = [self.write(f"{i}.txt", text) for i, text in enumerate(texts)]
        report = data_json("tokenize", *paths, "--out", self.path("out"), "--tokens-per-file", 25)
        # 31 + 46 + 1 tokens; bytes are tokens but for the three ends, at 30, 76 and 77.
        self.assertEqual([(25, 25), (25, 24), (25, 25), (3, 1)],
                         [(f["tokens"], f["text_bytes"]) for f in report["files"]])
        self.assertFalse(any("without_loss" in f for f in report["files"]))
        self.assertEqual([], glob.glob(self.path("out", "*.mask")))

    def test_prompts_carry_no_loss(self):
        rows = [("What is it? ", "It is."), ("", "Hm."), ("Once more: ", "")]
        path = self.write("chat.jsonl", "\n".join(
            json.dumps({"prompt": prompt, "answer": answer}) for prompt, answer in rows))
        flags = ["--prompt-field", "prompt", "--text-field", "answer", "--out", self.path("out")]
        report = data_json("tokenize", path, *flags, "--tokens-per-file", 20)
        expected = [(t, part) for prompt, answer in rows for part, tokens in
                    ((1, prompt.encode()), (0, (*answer.encode(), END))) for t in tokens]
        self.assertEqual(35, len(expected))
        for number, (begin, end) in enumerate([(0, 20), (20, 35)]):
            file = self.files()[number]
            self.assertEqual([t for t, _ in expected[begin:end]],
                             numpy.fromfile(file, dtype="<u2").tolist())
            mask = read_bytes(file + ".mask")
            self.assertEqual(b"stmask1\n" + (end - begin).to_bytes(8, "little"), mask[:16])
            bits = numpy.unpackbits(numpy.frombuffer(mask[16:], dtype=numpy.uint8),
                                    bitorder="little")
            self.assertEqual([part for _, part in expected[begin:end]], bits[:end - begin].tolist())
            self.assertEqual(sum(bits), report["files"][number]["without_loss"])
        data("tokenize", path, "--text-field", "answer", "--out", self.path("out"), "--overwrite")
        self.assertEqual([], glob.glob(self.path("out", "*.mask")))
        self.assertEqual(1, len(self.files()))

    def test_fields_that_are_not_there(self):
        path = self.write("chat.jsonl", '{"text": "a"}\n')
        self.assertIn('chat.jsonl:1: has no field "question"\n  --prompt-field names another; those '
                      "with text here: text\n", data(
                          "tokenize", path, "--prompt-field", "question", "--out", self.path("no"),
                          code=65))
        path = self.write("other.jsonl", '{"content": "a", "n": 1}\n')
        self.assertIn('other.jsonl:1: has no field "text"\n  --text-field names another; those with '
                      "text here: content\n",
                      data("tokenize", path, "--out", self.path("no"), code=65))
        self.assertIn('other.jsonl:1: holds no text in its field "n"', data(
            "tokenize", path, "--text-field", "n", "--out", self.path("no"), code=65))
        self.assertIn("is no .jsonl and has no fields", data(
            "tokenize", self.write("a.txt", "a"), "--prompt-field", "q", "--out", self.path("no"),
            code=2))
        self.assertFalse(os.path.exists(self.path("no")))

    def test_what_is_no_tokenizer_is_told_what_is(self):
        path = self.write("a.txt", "abc")
        for what in ["byte", "gpt2", self.path("none.model")]:
            with self.subTest(what):
                message = data("tokenize", path, "--tokenizer", what, "--out", self.path("no"),
                               code=65)
                for kind in ["bytes", "SentencePiece", "tokenizer.json", "vocab.json"]:
                    self.assertIn(kind, message)
        for kind in ["bytes", "SentencePiece", "tokenizer.json", "vocab.json"]:
            self.assertIn(kind, data("tokenize", "--help"))

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
        texts = [text, "naïve café 日本語", "<unk> ▁ \U0001F642"]
        ours, blank = back_to_text(self.path("model.model"), texts)
        self.assertTrue(blank)
        self.assertEqual([processor.decode(processor.encode(one)) for one in texts],
                         [one.removeprefix(" ") for one in ours])
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
