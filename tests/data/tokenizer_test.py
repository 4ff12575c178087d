"""`scaletrain data tokenize` with a tokenizer.json: Hugging Face's tokenizers give the same tokens,
and the same text for them."""
import functools
import json
import os
import pathlib
import random
import subprocess
import unicodedata
import unittest

import numpy
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tools_support import FolderTest, back_to_text, data, read_json

ROOT = pathlib.Path(__file__).resolve().parents[2]
END = "<|endoftext|>"
CORPUS = [(ROOT / "README.md").read_text(encoding="utf-8"),
          "don't we've 12345 привет привет 日本語 日本語 naïve e\u0301 " * 20]
# How Llama 3 cuts text.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PIECES = pre_tokenizers
BYTES = PIECES.ByteLevel(add_prefix_space=False, use_regex=False)

# name: normalizer, pre-tokenizer, options of the model
KINDS = {
    "gpt2": (None, PIECES.ByteLevel(add_prefix_space=False), {}),
    "prefixed": (None, PIECES.ByteLevel(add_prefix_space=True), {}),
    "llama3": (None, PIECES.Sequence([PIECES.Split(Regex(LLAMA3), "isolated"), BYTES]),
               {"ignore_merges": True}),
    "qwen": (normalizers.NFC(), PIECES.Sequence([PIECES.Split(Regex(LLAMA3), "isolated"), BYTES]),
             {}),
    "digits": (normalizers.NFKD(),
               PIECES.Sequence([PIECES.Digits(individual_digits=True),
                                PIECES.ByteLevel(add_prefix_space=False)]), {}),
    "llama2": (normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None,
               {"byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}),
    "mistral": (None, PIECES.Metaspace(prepend_scheme="first", split=False),
                {"byte_fallback": True, "unk_token": "<unk>"}),
    "metaspace": (None, PIECES.Metaspace(), {"unk_token": "<unk>", "fuse_unk": True}),
    "matches": (None, PIECES.Split(Regex(r"\p{L}+|[^\p{L}\s]"), "removed", invert=True),
                {"unk_token": "<unk>"}),
}

SIGNS = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
# Those that lose nothing, with what makes text of their tokens.
DECODERS = {"gpt2": decoders.ByteLevel(), "prefixed": decoders.ByteLevel(),
            "llama3": decoders.ByteLevel(), "qwen": decoders.ByteLevel(),
            "digits": decoders.ByteLevel(), "llama2": SIGNS, "mistral": SIGNS}


@functools.cache
def trained(kind):
    """The JSON of a tokenizer that Hugging Face trained."""
    normalizer, pre_tokenizer, options = KINDS[kind]
    tokenizer = Tokenizer(models.BPE(**options))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    special = [END]
    if "unk_token" in options:
        special.append("<unk>")
    if options.get("byte_fallback"):
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    byte_level = pre_tokenizer is not None and "ByteLevel" in str(pre_tokenizer)
    trainer = trainers.BpeTrainer(
        vocab_size=900, show_progress=False, special_tokens=special, max_token_length=12,
        initial_alphabet=PIECES.ByteLevel.alphabet() if byte_level else [])
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer.to_str()


def reference_of(kind):
    return Tokenizer.from_str(trained(kind))


def hostile_texts(draw):
    """Words of several scripts, blanks of every kind, marks, emoji, contractions, the end's name."""
    parts = ["don't", "I'LL", "ſ", "naïve", "e\u0301", "Ａ１２", "日本語", "привет", "١٢٣", "½", "🙂👍🏽",
             "\u00a0", "\u2003", "\u0085", "\t", "\n", "\r\n", " ", "  ", "   ", "▁", "a", "Z", "12345",
             "...", "!?", "_x_", "\u200d", "\u0300", "Ⅷ", END, "<unk>", "\x00", "\x7f", "ﬁ", "가"]
    texts = ["", " ", "▁", "a", END, END + " " + END, " " * 1000 + "x", "ab" * 3000]
    for _ in range(400):
        texts.append("".join(draw.choices(parts, k=draw.randrange(1, 30))))
    for _ in range(200):  # any character but surrogates, and U+180E, which is a blank to PCRE2 alone
        texts.append("".join(chr(c) for c in (draw.randrange(0x2FFFF) for _ in range(20))
                             if not 0xD800 <= c <= 0xDFFF and c != 0x180E))
    return texts


class TokenizerJson(FolderTest):
    def setUp(self):
        super().setUp()
        texts = hostile_texts(random.Random(7)) + CORPUS
        # What both sides know as assigned: newer characters' classes differ with Unicode's version.
        self.texts = [t for t in texts if self.is_old(t)]
        self.source = self.write("texts.jsonl",
                                 "\n".join(json.dumps({"text": t}) for t in self.texts))

    @staticmethod
    def is_old(text):
        return all(unicodedata.category(c) != "Cn" for c in text)

    def tokenize(self, tokenizer, *flags):
        data("tokenize", self.source, "--tokenizer", tokenizer, "--out", self.path("out"),
             "--overwrite", "--threads", 2, *flags)
        report = read_json(self.path("out", "train.tokens.json"))
        tokens = numpy.fromfile(self.path("out", "train-000000.bin"), dtype="<u2").tolist()
        return report, tokens

    def check(self, name, reference, path):
        report, tokens = self.tokenize(path)
        end = reference.token_to_id(END)
        self.assertEqual((end, reference.get_vocab_size()),
                         (report["end_of_text"], report["vocab_size"]))
        at = 0
        for text in self.texts:
            ids = reference.encode(text, add_special_tokens=False).ids + [end]
            self.assertEqual(ids, tokens[at:at + len(ids)], f"{name}: {text!r}")
            at += len(ids)
        self.assertEqual(at, len(tokens))

    def test_every_kind_of_tokenizer_json(self):
        for name in KINDS:
            with self.subTest(name):
                reference = reference_of(name)
                path = self.path("tokenizer.json")
                reference.save(path)
                self.check(name, reference, path)

    def test_tokens_stand_for_the_text_that_they_are_of(self):
        for name, decoder in DECODERS.items():
            with self.subTest(name):
                parts = json.loads(trained(name))
                # Tokens of bytes are no special ones in a published model.
                parts["added_tokens"] = [token for token in parts["added_tokens"]
                                         if not token["content"].startswith("<0x")]
                reference = Tokenizer.from_str(json.dumps(parts))
                reference.decoder = decoder
                path = self.path("tokenizer.json")
                reference.save(path)
                encoded = [reference.encode(text, add_special_tokens=False) for text in self.texts]
                expected = [reference.decode(one.ids) for one in encoded]
                ours, blank = back_to_text(path, self.texts)
                self.assertEqual(name in ("prefixed", "llama2", "mistral"), blank)
                for text, other, mine in zip(self.texts, expected, ours):
                    self.assertEqual(other, mine, f"{name}: {text!r}")

    def test_vocab_and_merges_of_gpt2_in_a_folder(self):
        reference = reference_of("gpt2")
        folder = self.path("gpt2")
        os.mkdir(folder)
        reference.model.save(folder)
        self.check("gpt2", reference, folder)
        self.write("gpt2/special_tokens_map.json", "version https://git-lfs.github.com/spec/v1\n")
        self.assertIn("special_tokens_map.json: is a git-lfs pointer", self.refused(folder))
        self.assertFalse(os.path.exists(self.path("no")))

    def test_the_token_that_ends_a_document(self):
        reference = reference_of("gpt2")
        reference.add_special_tokens(["<stop>"])
        os.mkdir(self.path("own"))
        reference.save(self.path("own", "tokenizer.json"))
        self.assertEqual(reference.token_to_id("<stop>"),
                         self.tokenize(self.path("own"), "--end-of-text", "<stop>")[0]["end_of_text"])
        self.write("own/tokenizer_config.json", json.dumps({"eos_token": {"content": "<stop>"}}))
        self.assertEqual(reference.token_to_id("<stop>"),
                         self.tokenize(self.path("own"))[0]["end_of_text"])
        self.assertIn("has no token <none> to end a document with", self.refused(
            self.path("own"), "--end-of-text", "<none>"))

    def refused(self, tokenizer, *flags, code=65):
        return data("tokenize", self.source, "--tokenizer", tokenizer, "--out", self.path("no"),
                    *flags, code=code)

    def test_what_is_not_supported_is_refused(self):
        sound = json.loads(trained("gpt2"))

        def written(**changes):
            return self.write("tokenizer.json", json.dumps(sound | changes))

        model = sound["model"]
        empty = self.path("empty")
        os.mkdir(empty)
        stripped = [dict(sound["added_tokens"][0], lstrip=True)]
        for path, message in [
                (lambda: written(normalizer={"type": "Lowercase"}), "Lowercase"),
                (lambda: written(pre_tokenizer={"type": "BertPreTokenizer"}), "BertPreTokenizer"),
                (lambda: written(pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a"},
                                                "behavior": "Isolated", "invert": False}),
                 "is not a regular expression"),
                (lambda: written(pre_tokenizer={"type": "Split", "pattern": {"Regex": "\\w+"},
                                                "behavior": "Isolated", "invert": False}),
                 "is not supported"),
                (lambda: written(model=dict(model, type="Unigram")), "Unigram"),
                (lambda: written(model=dict(model, dropout=0.1)), "/model/dropout 0.1"),
                (lambda: written(model=dict(model, merges=["q zzz"])), "which is not in the vocabulary"),
                (lambda: written(model={"type": "BPE"}), "is not a tokenizer.json of a BPE"),
                (lambda: written(added_tokens=stripped), "the added token"),
                (lambda: written(model=dict(model, vocab=dict(model["vocab"], a=-1))),
                 "/model/vocab/a: is -1"),
                (lambda: written(model=dict(model, vocab=dict(model["vocab"], a=10 ** 8))),
                 "/model/vocab/a: is 100000000"),
                (lambda: written(added_tokens=[dict(sound["added_tokens"][0], id=2 ** 40)]),
                 "/added_tokens: is 1099511627776"),
                (lambda: written(normalizer={"type": "Prepend", "prepend": "x" * 1000}),
                 "/normalizer: its Prepend and Replace"),
                (lambda: written(normalizer={"type": "Sequence", "normalizers": 4 * [
                    {"type": "Replace", "pattern": {"String": "x"}, "content": "x" * 100}]}),
                 "/normalizer: its Prepend and Replace"),
                (lambda: written(pre_tokenizer={"type": "Sequence", "pretokenizers": 70 * [
                    {"type": "ByteLevel"}]}), "has too many normalizers"),
                (lambda: written(pre_tokenizer={"type": "Metaspace", "replacement": "x" * 1000}),
                 "is not supported"),
                (lambda: written(pre_tokenizer={"type": "Sequence", "pretokenizers": 20 * [
                    {"type": "Metaspace", "replacement": " " * 4, "prepend_scheme": "never", "split": False}]}),
                 "is not supported"),  # each step would make blanks four times as many
                (lambda: written(pre_tokenizer={"type": "Split", "pattern": {"Regex": "\\C"},
                                                "behavior": "Isolated", "invert": False}),
                 "is not a regular expression"),
                (lambda: written(model=dict(model, merges="q zzz")), "/model/merges is not a list"),
                (lambda: written(added_tokens=sound["added_tokens"] + [
                    {"id": 9 + i, "content": f"<a long name, number {i}>"} for i in range(9000)]),
                 '..." is not a regular expression'),
                (lambda: self.write("bad.json", "{"), "bad.json"),
                (lambda: empty, "has neither tokenizer.json nor vocab.json")]:
            with self.subTest(message):
                self.assertIn(message, self.refused(path()))
        self.assertIn("is for a tokenizer.json",
                      self.refused("bytes", "--end-of-text", END, code=2))

    def test_a_configuration_whose_end_of_text_is_no_text(self):
        for name, content in (("vocab.json", '{"a": 0}'), ("tokenizer.json", trained("gpt2"))):
            with self.subTest(name):
                folder = self.path(f"beside {name}")
                os.mkdir(folder)
                self.write(f"beside {name}/{name}", content)
                self.write(f"beside {name}/merges.txt", "")
                self.write(f"beside {name}/tokenizer_config.json", '{"eos_token": {"content": 5}}')
                self.assertIn("tokenizer_config.json: /eos_token/content is not a text",
                              self.refused(folder))

    def test_a_document_that_is_not_utf8(self):
        with open(self.path("latin1.txt"), "wb") as file:
            file.write("naïve".encode("latin-1"))
        path = self.path("tokenizer.json")
        reference_of("gpt2").save(path)
        self.assertIn("latin1.txt:1: is not UTF-8", data(
            "tokenize", self.path("latin1.txt"), "--tokenizer", path, "--out", self.path("no"),
            code=65))


if __name__ == "__main__":
    unittest.main()
