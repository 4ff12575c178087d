"""`scaletrain generate`: greedy text is transformers', drawn text follows its seed, and what cannot
be continued is refused with one message."""

import json
import re
import shutil
import unittest

import sentencepiece
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from end_to_end import support

POSITIONS = 64
END = 256
SIZES = {"vocab_size": 257, "positions": POSITIONS, "dim": 32, "depth": 2, "heads": 4}
MODELS = {"gpt2": {**SIZES, "dropout": 0.0},
          "llama": {**SIZES, "kv_heads": 2, "hidden": 64, "rope_scaling": "linear",
                    "rope_factor": 2.0}}
LINES = ["the cat sat on the mat. ", "a naïve café, 3 € each. ", "日本語 and back. "]


def peer(name, checkpoint, vocab_size=257, end=END):
    state = load_file(checkpoint / "model.safetensors")
    if name == "gpt2":
        model = GPT2LMHeadModel(GPT2Config(
            vocab_size=257, n_positions=POSITIONS, n_embd=32, n_layer=2, n_head=4,
            bos_token_id=END, eos_token_id=END))
        state = {f"transformer.{key}": value for key, value in state.items()}
    else:
        model = LlamaForCausalLM(LlamaConfig(
            vocab_size=vocab_size, max_position_embeddings=POSITIONS, hidden_size=32,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=64, rms_norm_eps=1e-5, bos_token_id=end, eos_token_id=end,
            rope_parameters={"rope_theta": 10000.0, "rope_type": "linear", "factor": 2.0}))
    missing = model.load_state_dict(state, strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"]) and not missing.unexpected_keys, missing
    model.tie_weights()
    return model.eval()


def trained_on(case, folder, *flags):
    """Token files of a few short documents in `folder`; the source of a recipe."""
    path = case.folder / "text.jsonl"
    path.write_text("".join(json.dumps({"text": LINES[i % 3] * (1 + i % 4)}) + "\n"
                            for i in range(120)))
    case.run_scaletrain("data", "tokenize", path, "--out", case.folder / folder, *flags)
    return {"train": {"tokens": str(case.folder / folder / "train-000000.bin")}}


class GenerateTest(support.RunTestCase):
    @classmethod
    def setUpClass(cls):
        pass  # no digits

    def train(self, name, model, data, **options):
        self.run_scaletrain("launch", "--nproc", 1, self.recipe(
            name, model={"name": model, **MODELS[model], **options}, data=data, steps=60,
            batch={"per_device": 8}, optimizer={"name": "adamw", "lr": 0.01}))
        return self.folder / name

    def generate(self, run, *flags, expect=0):
        done = self.run_scaletrain("generate", run, *flags, expect=expect)
        if expect:
            self.assertEqual("", done.stdout)
            return done.stderr
        self.assertTrue(done.stdout.endswith("\n"))
        return done.stdout[:-1]

    def check_greedy(self, name, run):
        model = peer(name, run / "checkpoints/latest")
        for prompt in ("the cat", "a naï", "日"):
            tokens = torch.tensor([list(prompt.encode())])
            with torch.no_grad():
                whole = model.generate(tokens, max_new_tokens=40, do_sample=False)[0].tolist()
            new = bytes(token for token in whole[tokens.shape[1]:] if token != END)
            self.assertEqual(new.decode(errors="replace"), self.generate(
                run, "--prompt", prompt, "--temperature", 0, "--max-tokens", 40, "--device", "cpu"))
            self.assertGreater(len(new), 3)

    def check_drawn(self, run):
        def text(*flags):
            return self.generate(run, "--prompt", "the ", "--max-tokens", 30, *flags)

        self.assertEqual(text("--seed", 1), text("--seed", 1))
        self.assertNotEqual(text("--seed", 1), text("--seed", 2))
        self.assertEqual(text("--temperature", 0), text("--top-k", 1, "--seed", 5))
        self.assertEqual(self.generate(run, "--seed", 3), self.generate(run, "--seed", 3))

    def check_several(self, run):
        """Prompts of a file, each twice, on one and two ranks; a text alone is the first of them."""
        prompts = ["the cat", "", "on the"]
        file = self.folder / "prompts.txt"
        file.write_text("\n".join(prompts) + "\n")
        flags = ("--prompts", file, "--samples", 2, "--max-tokens", 12, "--seed", 3)
        one = self.generate(run, *flags)
        self.assertEqual(one, self.generate(run, *flags, "--nproc", 2))
        lines = [json.loads(line) for line in one.splitlines()]
        self.assertEqual([prompt for prompt in prompts for _ in range(2)],
                         [line["prompt"] for line in lines])
        self.assertEqual(6, len({line["text"] for line in lines}))
        self.assertLessEqual({line["ended_by"] for line in lines}, {"end_of_text", "max_tokens"})
        alone = ("--prompt", "the cat", "--max-tokens", 12, "--seed", 3)
        self.assertEqual(lines[0]["text"], self.generate(run, *alone))
        self.assertEqual(lines[0], json.loads(self.generate(run, *alone, "--json")))
        self.assertNotEqual("", self.generate(run, *alone, "--precision", "bf16"))
        file.write_text("the\n" + "x" * 65 + "\n")
        self.assertIn("prompts.txt line 2: has 65 tokens", self.generate(run, *flags, expect=2))
        self.assertIn("bf17", self.generate(run, "--precision", "bf17", expect=2))

    def test_bytes(self):
        data = trained_on(self, "text")
        for name in MODELS:
            with self.subTest(name):
                run = self.train(name, name, {**data, "document_attention": name == "llama"})
                self.check_greedy(name, run)
        self.check_drawn(run)
        self.check_several(run)
        self.check_refused(run)
        self.check_without_token_files(run)

    def check_refused(self, run):
        self.assertIn("has 65 tokens, and the model has 64 positions",
                      self.generate(run, "--prompt", "x" * 65, expect=2))
        full = self.run_scaletrain("generate", run, "--prompt", "x" * 64, "--temperature", 0)
        self.assertIn("the text fills the model's 64 positions", full.stderr)
        self.assertIn("no-such-run", self.generate(self.folder / "no-such-run", expect=65))
        (self.folder / "empty").mkdir()
        self.assertIn("has no checkpoint",
                      self.generate(self.folder / "empty", expect=65))
        self.assertIn("--temprature", self.generate(run, "--temprature", 1, expect=2))
        self.assertIn("--top-p", self.generate(run, "--top-p", 1.5, expect=2))
        pieces = self.folder / "pieces.model"
        pieces.write_bytes(b"model")
        self.assertIn("pieces.model: is not a SentencePiece model",
                      self.generate(run, "--tokenizer", pieces, expect=65))
        broken = self.folder / "broken"
        shutil.copytree(run / "checkpoints/step-00000060", broken)
        with open(broken / "model.safetensors", "r+b") as file:
            file.seek(-4, 2)
            file.write(b"\0\0\0\x7f")
        self.assertIn("model.safetensors", self.generate(broken, expect=65))

    def check_without_token_files(self, run):
        before = self.generate(run, "--seed", 4)
        card = self.folder / "text/train.tokens.json"
        other = {**json.loads(card.read_text()), "tokenizer": "tokenizer.json " + 64 * "0"}
        card.write_text(json.dumps(other))  # the text was tokenized again
        self.assertEqual(before, self.generate(run, "--seed", 4))
        card.unlink()
        self.assertEqual(before, self.generate(run, "--seed", 4))
        (run / "cards/train.json").unlink()
        self.assertIn("--tokenizer bytes", self.generate(run, expect=2))
        self.assertEqual(before, self.generate(run, "--seed", 4, "--tokenizer", "bytes"))

    def test_a_tokenizer_of_hugging_face(self):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(LINES, trainers.BpeTrainer(
            vocab_size=300, show_progress=False, special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        path = self.folder / "tokenizer.json"
        tokenizer.save(str(path))
        data = trained_on(self, "text", "--tokenizer", path)
        run = self.train("bpe", "gpt2", data, vocab_size=tokenizer.get_vocab_size())
        text = self.generate(run, "--prompt", "the cat", "--temperature", 0)
        self.assertIn("the mat.", text)
        shutil.move(path, self.folder / "text/tokenizer.json")  # beside the card
        self.assertEqual(text, self.generate(run, "--prompt", "the cat", "--temperature", 0))
        shutil.move(self.folder / "text/tokenizer.json", self.folder / "other.json")
        self.assertIn("tokenizer.json, which is not beside", self.generate(run, expect=2))
        self.assertIn("and the run's tokenizer is", self.generate(
            run, "--tokenizer", "bytes", expect=2))

    def test_sentence_pieces(self):
        source = self.folder / "lines.txt"
        source.write_text("\n".join(LINES * 20))
        for kind in ("bpe", "unigram"):
            with self.subTest(kind):
                path = self.folder / f"{kind}.model"
                sentencepiece.SentencePieceTrainer.train(
                    input=str(source), model_prefix=str(path.with_suffix("")), vocab_size=60,
                    model_type=kind, minloglevel=2, hard_vocab_limit=False)
                pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
                run = self.train(kind, "llama", trained_on(self, kind, "--tokenizer", path),
                                 vocab_size=pieces.get_piece_size())
                texts = []
                for prompt in ("the cat", ""):
                    found = json.loads(self.generate(run, "--prompt", prompt, "--temperature", 0,
                                                     "--max-tokens", 12, "--json"))
                    texts.append(found["text"])
                    self.assertNotIn("\u2581", found["text"])
                model = peer("llama", run / "checkpoints/latest", pieces.get_piece_size(),
                             pieces.eos_id())
                for prompt, text in (("the cat", texts[0]), ("", texts[1])):
                    # A document that is begun has no blank of the tokenizer's in front.
                    tokens = pieces.encode(prompt) or [pieces.eos_id()]
                    with torch.no_grad():
                        whole = model.generate(torch.tensor([tokens]), max_new_tokens=12,
                                               do_sample=False)[0].tolist()
                    self.assertEqual(pieces.decode(whole), prompt + text)
                    self.assertGreater(len(text), 3)
                self.assertEqual(texts[0], self.generate(
                    run, "--prompt", "the cat", "--temperature", 0, "--max-tokens", 12,
                    "--nproc", 2))
                shutil.move(path, self.folder / kind / path.name)  # beside the card
                self.assertEqual(texts[0], self.generate(
                    run, "--prompt", "the cat", "--temperature", 0, "--max-tokens", 12))
        self.check_flags_apart(run)

    def check_flags_apart(self, run):
        """LibTorch's FLAGS_minloglevel is no memory of SentencePiece's, which has another type."""
        self.run_scaletrain("generate", run, "--prompt", "the", "--max-tokens", 1, env={
            "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(self.folder / "linker")})
        text = "".join(file.read_text() for file in self.folder.glob("linker.*"))
        bound = set(re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]: .*`FLAGS_minloglevel'", text))
        self.assertIn("libsentencepiece", str(bound))
        self.assertEqual([], [(user, owner) for user, owner in bound if user != owner])

    def test_a_checkpoint_of_images(self):
        support.make_digits()
        self.run_scaletrain("launch", "--nproc", 1, self.recipe("images", steps=2))
        self.assertIn("is a checkpoint of mlp, which does not generate text",
                      self.generate(self.folder / "images", expect=2))


if __name__ == "__main__":
    unittest.main()
