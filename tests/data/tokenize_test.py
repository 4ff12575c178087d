"""`scaletrain data tokenize`: NumPy reads nanoGPT's and llm.c's layouts; SentencePiece agrees."""
import bz2
import glob
import gzip
import io
import json
import lzma
import os
import pathlib
import tarfile
import unittest
import zipfile

import numpy
import pyarrow
import pyarrow.parquet
import sentencepiece

from tools_support import FolderTest, back_to_text, data, data_json, picture, read_bytes, read_json

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

    def tokens_of(self, path, *flags):
        data("tokenize", path, "--out", self.path("out"), "--overwrite", *flags)
        return numpy.fromfile(self.files()[0], dtype="<u2").tolist()

    def test_documents_in_every_container(self):
        """Each file holds the same documents."""
        texts = ["one", 'zwei, "Döner"\nand more', ""]
        expected = [t for text in texts for t in (*text.encode(), END)]
        rows = [{"n": i, "body": text} for i, text in enumerate(texts)]
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        quoted = [text.replace('"', '""') for text in texts]
        csv = "".join(f'{i},"{text}"\r\n' for i, text in enumerate(quoted)).encode()
        tsv = "".join(f'{i}\t"{text}"\n' for i, text in enumerate(quoted)).encode()
        table = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table({"n": [0, 1, 2], "body": texts}), table)
        for name, content in [
                ("a.jsonl", lines), ("a.ndjson", lines), ("a.json", lines), ("A.JSONL", lines),
                ("a.jsonl.gz", gzip.compress(lines)), ("gzip.jsonl", gzip.compress(lines)),
                ("a.ndjson.xz", lzma.compress(lines)), ("a.jsonl.bz2", bz2.compress(lines)),
                ("a.jsonl.zst", pyarrow.compress(lines, "zstd", asbytes=True)),
                ("list.json", json.dumps(rows, indent=1).encode()),
                ("a.csv", b"n,body\r\n" + csv), ("mark.csv", b"\xef\xbb\xbfbody,n\n" + b"".join(
                    f'"{text}",{i}\n'.encode() for i, text in enumerate(quoted))),
                ("a.tsv", b"n\tbody\n" + tsv), ("a.CSV.gz", gzip.compress(b"n,body\r\n" + csv)),
                ("a.parquet", table.getvalue()), ("parquet.bin", table.getvalue())]:
            with self.subTest(name):
                self.assertEqual(expected, self.tokens_of(self.write(name, content), "--column", "body"))
        whole = self.write("a.txt.gz", gzip.compress(texts[1].encode()))
        self.assertEqual([*texts[1].encode(), END], self.tokens_of(whole))
        self.assertEqual(expected, self.tokens_of(self.write("texts.json", json.dumps(texts))))
        self.assertEqual([*b"one", END],
                         self.tokens_of(self.write("object.json", '{\n "text": "one"\n}\n')))

    def test_other_encodings_are_converted_where_that_is_said(self):
        text = "Döner"
        expected = [*text.encode(), END]
        for encoding, content, refusal in [
                ("latin1", text.encode("latin-1"), "a.txt:1: is not UTF-8"),
                ("utf-16", text.encode("utf-16"), "a.txt: is UTF-16\n  --encoding utf-16 converts it"),
                ("utf-32", text.encode("utf-32"), "a.txt: is UTF-32\n  --encoding utf-32 converts it"),
                ("utf-16le", text.encode("utf-16-le"), "has a zero at byte 1"),
                ("", b"\xef\xbb\xbf" + text.encode(), "")]:
            with self.subTest(encoding):
                path = self.write("a.txt", content)
                flags = ["--encoding", encoding] if encoding else []
                self.assertEqual(expected, self.tokens_of(path, *flags))
                if refusal:
                    self.assertIn(refusal, data("tokenize", path, "--out", self.path("no"), code=65))
        path = self.write("a.jsonl", b'{"text": "a"}\n{"text": "' + text.encode("latin-1") + b'"}\n')
        self.assertIn("a.jsonl:2: is not UTF-8",
                      data("tokenize", path, "--out", self.path("no"), code=65))
        self.assertEqual([*b"a", END, *expected], self.tokens_of(path, "--encoding", "latin1"))
        self.assertIn('a.txt: byte 1: is not valid ascii (--encoding)', data(
            "tokenize", self.write("a.txt", text), "--encoding", "ascii", "--out", self.path("no"),
            code=65))
        self.assertIn('--encoding: "klingon" is not known', data(
            "tokenize", path, "--encoding", "klingon", "--out", self.path("no"), code=2))

    def test_files_that_are_not_text_are_refused_with_their_kind(self):
        tar, archive = io.BytesIO(), io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as file:
            file.addfile(tarfile.TarInfo("a.txt"))
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("a.txt", "text")
        html = b"<!DOCTYPE html>\n<html>404</html>"
        for name, content, found in [
                ("a.tar", tar.getvalue(), "is a tar archive, not text"),
                ("a.tar.gz", gzip.compress(tar.getvalue()), "is a tar archive, not text"),
                ("a.zip", archive.getvalue(), "is a zip archive"),
                ("a.pdf", b"%PDF-1.7\n%\xe2\xe3", "is a PDF, not text"),
                ("a.arrow", b"ARROW1\0\0", "is an Arrow file, not text"),
                ("a.npy", b"\x93NUMPY\x01\0", "is a NumPy array, not text"),
                ("a.bin", b"ab\0cd", "has a zero at byte 2"),
                ("a.webp", b"RIFF\x24\0\0\0WEBPVP8 ", "is a WebP picture, not text"),
                ("a.wav", b"RIFF\x24\x08\0\0WAVEfmt \x10\0", "is WAV audio, not text"),
                ("a.mp3", b"ID3\x04\0\0", "is MP3 audio, not text"),
                ("b.mp3", b"\xff\xfb\x90\x64", "is MP3 audio, not text"),
                ("a.mp4", b"\0\0\0\x18ftypmp42", "is an MP4 or QuickTime video, not text"),
                ("a.png", picture(0, kind="PNG"), "is a PNG picture, not text"),
                ("a.jpg", picture(0), "is a JPEG picture, not text"),
                ("a.gif", picture(0, kind="GIF"), "is a GIF picture, not text"),
                ("a.bmp", picture(0, kind="BMP"), "is a BMP picture, not text"),
                ("a.tif", picture(0, kind="TIFF"), "is a TIFF picture, not text"),
                ("a.safetensors", b"\x08" + bytes(7) + b'{"a":{}}', "is a safetensors file, not text"),
                ("cut.bin", b"PAR1\x15\0\x15", "is a Parquet file, compressed or cut short, not text"),
                ("a.parquet", b"no Parquet", "is not a Parquet file"),
                ("a.jsonl", html, "is an HTML page, not the file itself"),
                ("page.txt.gz", gzip.compress(html), "is an HTML page, not the file itself"),
                ("lfs.txt", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n",
                 "is a git-lfs pointer, not the file itself\n  fetch the file: git lfs pull"),
                ("nan.json", b'[{"text": NaN}]', "is not JSON: NaN at its byte 11"),
                ("number.json", b"[7]", "element 0: is not an object with a text field"),
                ("a.csv", b"body,n\n1\n", "a.csv:2: 1 columns where the first line has 2")]:
            with self.subTest(name):
                flags = ["--column", "body"] if name == "a.csv" else []
                self.assertIn(found, data("tokenize", self.write(name, content), *flags, "--out",
                                          self.path("no"), code=65))
        self.assertFalse(os.path.exists(self.path("no")))
        orc = b"ORC" + bytes(40) + b"ORC\x17"
        self.assertIn("is an ORC file, not text", data(
            "tokenize", self.write("a.orc", orc), "--out", self.path("no"), code=65))
        for text in (b"ORCHIDS bloom", b"PAR1 is a magic", b"PAR1 and PAR1", b"GIF89a and RIFF",
                     b"BMW", b"RIFF....WAVE", b"ID3 and OggS", b"Rest"):  # as the magic of a format
            self.assertEqual([*text, END], self.tokens_of(self.write("a.txt", text)))
        self.assertEqual([*html, END], self.tokens_of(self.write("page.html", html)))

    def test_columns_that_are_not_there(self):
        table = self.path("a.parquet")
        pyarrow.parquet.write_table(pyarrow.table({"body": ["a", None], "n": [1, 2]}), table)
        csv = self.write("a.csv", "body,n\na,1\n")
        for path in (table, csv):
            self.assertIn('has no field "text"\n  --column names another field; fields with text here: body',
                          data("tokenize", path, "--out", self.path("no"), code=65))
        for column, found in (("n", 'row 0: its "n" is no text'), ("body", 'row 1: its "body" is null')):
            self.assertIn(found, data("tokenize", table, "--column", column, "--out",
                                      self.path("no"), code=65))
        self.assertIn("a.txt is one document and has no fields", data(
            "tokenize", self.write("a.txt", "a"), "--column", "body", "--out", self.path("no"), code=2))

    def test_fields_that_are_not_there(self):
        path = self.write("chat.jsonl", '{"text": "a"}\n')
        self.assertIn('chat.jsonl:1: has no field "question"\n  --prompt-field names another field; '
                      "fields with text here: text\n", data(
                          "tokenize", path, "--prompt-field", "question", "--out", self.path("no"),
                          code=65))
        path = self.write("other.jsonl", '{"content": "a", "n": 1}\n')
        self.assertIn('other.jsonl:1: has no field "text"\n  --text-field names another field; fields with '
                      "text here: content\n",
                      data("tokenize", path, "--out", self.path("no"), code=65))
        self.assertIn('other.jsonl:1: has no text in its field "n"', data(
            "tokenize", path, "--text-field", "n", "--out", self.path("no"), code=65))
        self.assertIn("is one document and has no fields", data(
            "tokenize", self.write("a.txt", "a"), "--prompt-field", "q", "--out", self.path("no"),
            code=2))
        self.assertFalse(os.path.exists(self.path("no")))

    def test_an_unknown_tokenizer_gets_the_list_of_tokenizers(self):
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
        self.assertIn("is not a SentencePiece model", data(
            "tokenize", source, "--tokenizer", source, "--out", self.path("no"), code=65))
        self.check_damaged_sentencepiece(source, read_bytes(self.path("model.model")))

    def check_damaged_sentencepiece(self, source, model):
        """The library trusts its model: each of these made it read outside its memory."""
        at = model.index(b"\x0a\x08nmt_nfkc\x12") + 11
        while model[at] & 0x80:  # the length of the charsmap
            at += 1
        trie = at + 1 + 4
        units = numpy.frombuffer(model, "<u4", int.from_bytes(model[trie - 4:trie], "little") // 4,
                                 trie)
        with_value = next(i for i, unit in enumerate(units.tolist())
                          if unit >> 31 == 0 and unit >> 8 & 1)
        unit = int(units[with_value])
        value = with_value ^ (unit >> 10) << ((unit & 0x200) >> 6)
        score = model.index(b"\x0a\x05<unk>\x15") + 8
        charsmap = "/normalizer_spec/precompiled_charsmap: "
        for place, number, message in [
                (trie, 0x7ffffe00, charsmap + "unit 0 of its trie points outside the trie"),
                (trie + 4 * value, 0xffffffff,
                 charsmap + f"unit {with_value} of its trie points outside the normalized strings"),
                (trie - 4, 0xfffffff0, charsmap + "gives its trie 4294967280 of the "),
                (score, 0x7fc00000, "/pieces/0: has the score nan")]:
            with self.subTest(message):
                damaged = model[:place] + number.to_bytes(4, "little") + model[place + 4:]
                with open(self.path("damaged.model"), "wb") as file:
                    file.write(damaged)
                self.assertIn("damaged.model: " + message, data(
                    "tokenize", source, "--tokenizer", self.path("damaged.model"), "--out",
                    self.path("no"), code=65))

    def test_files_are_not_overwritten_unasked(self):
        path = self.write("a.txt", "abc" * 100)
        data("tokenize", path, "--out", self.path("out"), "--tokens-per-file", 100)
        before = [read_bytes(file) for file in self.files()]
        self.assertIn("train-000000.bin: exists already",
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
