"""Ranks that share each sequence train as one rank does, and their checkpoints are read on any mesh."""

import json
import unittest

from end_to_end import support, text_test

CONTEXT = text_test.CONTEXT
GPT2 = {**text_test.MODEL, "dropout": 0.0}
LLAMA = {"name": "llama", "vocab_size": 257, "positions": CONTEXT, "dim": 32, "depth": 2, "heads": 4,
         "kv_heads": 2, "hidden": 48}
STEPS = 8
OTHER_MESH = ("--allow", "parallel")


class ContextTest(text_test.TextTestCase):
    def setUp(self):
        super().setUp()
        # Windows with several documents, and with targets that have no loss.
        self.data = {**self.tokenize("--prompt-field", "prompt"), "document_attention": True}

    def launch(self, name, ranks, *flags, expect=0, env=None, model=GPT2, **changes):
        path = self.recipe(name, model=model, optimizer=text_test.ADAMW, data=self.data,
                           batch={"global": 8, "per_device": 4}, clip={"norm": 1.0},
                           ema={"decay": 0.9}, steps=STEPS,
                           validate={"every": {"steps": STEPS // 2}},
                           checkpoint={"every": {"steps": STEPS // 2}}, **changes)
        result = self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect, env=env)
        return result.stderr

    def lines(self, name):
        """Of each step the last attempt's."""
        train = {r["step"]: r for r in support.records(self.folder / name, "train")}
        return list(train.values()), support.records(self.folder / name, "eval")

    def assert_same_training(self, one, other):
        for ours, theirs in zip(self.lines(one), self.lines(other)):
            self.assertEqual(len(ours), len(theirs))
            for a, b in zip(ours, theirs):
                self.assertEqual(a.get("order_digest"), b.get("order_digest"))
                self.assertEqual(a.get("count"), b.get("count"))
                for key in ("loss", "grad_norm"):
                    if key in a:
                        self.assertAlmostEqual(a[key], b[key], delta=1e-5 * abs(a[key]), msg=str(a))

    def test_meshes_train_as_one_rank_does(self):
        for name, model in (("gpt2", GPT2), ("llama", LLAMA)):
            self.launch(f"{name}-1", 1, model=model)
            for ranks, context in ((2, 2), (4, 2), (4, 4)):
                run = f"{name}-{ranks}-{context}"
                self.launch(run, ranks, model=model, parallel={"context": context})
                self.assert_same_training(f"{name}-1", run)

    def test_a_checkpoint_is_read_on_another_mesh(self):
        self.launch("alone", 1)
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 1}"}
        for name, ranks, fewer in (("2-to-1", 2, 1), ("4-to-2", 4, 2)):
            self.launch(name, ranks, expect=137, env=kill, parallel={"context": ranks})
            self.launch(name, fewer, "--resume", "auto", *OTHER_MESH, parallel={"context": fewer})
            self.assert_same_training("alone", name)
        losses = [json.loads(self.run_scaletrain("eval", self.folder / run, "--json", "--nproc",
                                                 ranks).stdout)["measures"]["loss"]
                  for run, ranks in (("alone", 1), ("2-to-1", 2), ("4-to-2", 1))]
        for loss in losses[1:]:
            self.assertAlmostEqual(losses[0], loss, delta=1e-5 * losses[0])

    def test_a_killed_run_ends_with_the_bits_of_one_left_alone(self):
        parallel = {"context": 2}
        self.launch("whole", 2, parallel=parallel)
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2}"}
        self.launch("killed", 2, expect=137, env=kill, parallel=parallel)
        said = self.launch("killed", 2, "--resume", "auto", parallel=parallel)
        self.assertNotIn("not bit for bit", said)
        self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                           for run in ("whole", "killed")))

    def test_what_cannot_be_shared_is_refused_before_it_starts(self):
        said = self.launch("tokens", 3, expect=2, parallel={"context": 3})
        self.assertIn(f"3 ranks share a sequence in 6 chunks, and /data/context is {CONTEXT}", said)
        self.assertIn("use one of: 1, 2, 4, 8, 16", said)
        said = self.launch("ranks", 3, expect=2, parallel={"context": 2})
        self.assertIn("3 ranks are not a multiple of 2 = context 2", said)


if __name__ == "__main__":
    unittest.main()
