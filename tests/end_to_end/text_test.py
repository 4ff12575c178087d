"""A language model on token files: the order, the loss and the masks do not depend on the number of
ranks, and a killed run ends as the one that was left alone."""

import json
import unittest

from end_to_end import killed_runs, support

CONTEXT = 32
MODEL = {"name": "gpt2", "vocab_size": 257, "positions": CONTEXT, "dim": 32, "depth": 2, "heads": 2,
         "dropout": 0.1}
ADAMW = {"name": "adamw", "lr": 2e-3}
STEPS = 12


class TextTestCase(support.RunTestCase):
    @classmethod
    def setUpClass(cls):
        pass  # no digits

    def setUp(self):
        super().setUp()
        pages = sorted(page for folder in ("internals", "reference")
                       for page in (support.ROOT / "docs" / folder).glob("*.md"))
        # Words in the place of a prompt, of another length in each document.
        rows = [{"prompt": f"{page.stem} " * (3 + 7 * i), "text": page.read_text(encoding="utf-8")}
                for i, page in enumerate(pages)]
        for name, part in (("train", rows[2:]), ("val", rows[:2])):
            path = self.folder / f"{name}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in part))

    def tokenize(self, *flags):
        for name in ("train", "val"):
            self.run_scaletrain("data", "tokenize", self.folder / f"{name}.jsonl", "--out",
                                self.folder / "text", "--name", name, "--tokens-per-file", 7000,
                                "--overwrite", *flags)
        files = sorted((self.folder / "text").glob("train-*.bin"))
        self.assertGreater(len(files), 5)
        return {"train": {"tokens": [str(file) for file in files]},
                "val": {"tokens": str(self.folder / "text/val-000000.bin")},
                "shuffle_shards": 2, "threads": 2}


class OrderTest(TextTestCase):
    def train(self, name, ranks, data, batch, **changes):
        path = self.recipe(name, model=MODEL, optimizer=ADAMW, data=data, batch=batch, steps=STEPS,
                           validate={"every": {"steps": STEPS}}, **changes)
        self.run_scaletrain("launch", "--nproc", ranks, path)
        return (support.records(self.folder / name, "train"),
                support.records(self.folder / name, "eval"))

    def check_ranks(self, data):
        fixed = {"global": 16, "per_device": 4}
        runs = [self.train(f"ranks-{n}", n, data, fixed) for n in (1, 2, 4)]
        one = runs[0][0]
        self.assertEqual(STEPS, len(one))
        self.assertEqual(STEPS, len({r["order_digest"] for r in one}))
        for train, evaluation in runs[1:]:
            self.assertEqual([r["order_digest"] for r in one], [r["order_digest"] for r in train])
            for a, b in zip(one + runs[0][1], train + evaluation):
                self.assertLess(abs(a["loss"] - b["loss"]), 1e-5 * abs(a["loss"]),
                                f"step {a['step']}: {a['loss']} and {b['loss']}")
        return runs[0]

    def test_at_1_2_and_4_ranks_with_dropout(self):
        train, evaluation = self.check_ranks(self.tokenize())
        self.assertLess(train[-1]["loss"], train[0]["loss"] - 0.5)
        # With every byte of the text a token but the end of a document, bits per byte follow.
        last = evaluation[-1]
        card = json.loads((self.folder / "text/val.tokens.json").read_text())
        of_a_token = (sum(file["text_bytes"] for file in card["files"][:1]) /
                      sum(file["tokens"] for file in card["files"][:1]))
        self.assertAlmostEqual(last["loss"] / 0.6931471805599453 / of_a_token,
                               last["bits_per_byte"], places=6)
        self.check_eval(last)

    def check_eval(self, last):
        """What training measured at its end, eval measures of the checkpoint."""
        run = self.folder / "ranks-1"
        for ranks in (1, 2):
            found = json.loads(self.run_scaletrain("eval", run, "--json", "--nproc", ranks).stdout)
            self.assertEqual({"loss", "perplexity", "bits_per_byte"}, set(found["measures"]))
            for name, value in found["measures"].items():
                self.assertAlmostEqual(last[name], value, delta=1e-5 * last[name])
            self.assertEqual(last["count"], found["count"])
            self.assertNotIn("classes", found)
        for words in (["eval", run, "--html", self.folder / "page.html"],
                      ["predict", run, self.folder / "val.jsonl"]):
            self.run_scaletrain(*words, expect=2)
        other = self.run_scaletrain("eval", run, "--json", "--data",
                                    self.folder / "text/train-000000.bin")
        self.assertGreater(json.loads(other.stdout)["measures"]["bits_per_byte"], 0)

    def test_masks_and_documents_apart_at_1_2_and_4_ranks(self):
        # Windows differ in how many of their targets carry a loss: the sum over all ranks is divided
        # by the number of all ranks.
        _, evaluation = self.check_ranks(
            {**self.tokenize("--prompt-field", "prompt"), "document_attention": True})
        self.assertNotIn("bits_per_byte", evaluation[-1])


class ResumeTest(TextTestCase, killed_runs.KilledRunTestCase):
    def check(self, ranks):
        kills = killed_runs.KILLS if support.LONG else ["rank", "launcher while saving"]
        self.check_killed_run(ranks, 40, {
            "model": MODEL, "optimizer": ADAMW, "data": self.tokenize("--prompt-field", "prompt"),
            "validate": {"every": {"steps": 20}}}, kills)

    def test_two_ranks_with_dropout_and_masks(self):
        self.check(2)

    @unittest.skipUnless(support.LONG, "four ranks: the long form")
    def test_four_ranks_with_dropout_and_masks(self):
        self.check(4)


if __name__ == "__main__":
    unittest.main()
