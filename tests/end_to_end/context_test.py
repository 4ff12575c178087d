"""Ranks that share each sequence train as one rank does, and their checkpoints are read on any mesh."""

import json
import unittest

from end_to_end import support, text_test

CONTEXT = text_test.CONTEXT
GPT2 = {**text_test.MODEL, "dropout": 0.0}
LLAMA = {"name": "llama", "vocab_size": 257, "positions": CONTEXT, "dim": 32, "depth": 2, "heads": 4,
         "kv_heads": 2, "hidden": 48}
STEPS = 8
STAGES = {"pipeline": 2, "context": 2}
MICRO = {"global": 8, "per_device": 2}  # as many micro-batches as a pipeline needs
OTHER_MESH = ("--allow", "parallel")


class ContextTest(text_test.TextTestCase):
    def setUp(self):
        super().setUp()
        # Windows with several documents, and with targets that have no loss.
        self.data = {**self.tokenize("--prompt-field", "prompt"), "document_attention": True}

    def launch(self, name, ranks, *flags, expect=0, env=None, model=GPT2, **changes):
        changes = {"batch": {"global": 8, "per_device": 4}, "ema": {"decay": 0.9}, **changes}
        path = self.recipe(name, model=model, optimizer=text_test.ADAMW, data=self.data,
                           clip={"norm": 1.0}, steps=STEPS,
                           validate={"every": {"steps": STEPS // 2}},
                           checkpoint={"every": {"steps": STEPS // 2}}, **changes)
        result = self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect, env=env)
        return result.stderr

    def test_meshes_train_as_one_rank_does(self):
        sizes = ((2, 2), (4, 2), (4, 4))  # ranks and context
        # The short form has gpt2 in stages, below.
        models = (("llama", LLAMA), ("gpt2", GPT2))
        for name, model in models if support.LONG else models[:1]:
            self.launch(f"{name}-1", 1, model=model)
            for ranks, context in sizes if support.LONG else sizes[2:]:
                run = f"{name}-{ranks}-{context}"
                self.launch(run, ranks, model=model, parallel={"context": context})
                self.assert_same_course(run, f"{name}-1")

    def test_a_checkpoint_is_read_on_another_mesh(self):
        self.launch("alone", 1)
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 1}"}
        self.launch("4-to-2", 4, expect=137, env=kill, parallel={"context": 4})
        self.launch("4-to-2", 2, "--resume", "auto", *OTHER_MESH, parallel={"context": 2})
        self.assert_same_course("4-to-2", "alone")
        losses = [json.loads(self.run_scaletrain("eval", self.folder / run, "--json", "--nproc",
                                                 ranks).stdout)["measures"]["loss"]
                  for run, ranks in (("alone", 1), ("4-to-2", 2), ("4-to-2", 1))]
        for loss in losses[1:]:
            self.assertAlmostEqual(losses[0], loss, delta=1e-5 * losses[0])

    def test_stages_of_a_pipeline_share_sequences_and_go_on_bit_for_bit_after_a_kill(self):
        self.launch("alone", 1)
        runs = [("halves", 4, {**STAGES, "schedule": "zero_bubble", "balance": "time"}),
                ("copies", 8, STAGES), ("ring", 8, {**STAGES, "context": 4, "schedule": "gpipe"})]
        for name, ranks, parallel in runs if support.LONG else runs[:1]:
            self.launch(name, ranks, model=GPT2, parallel=parallel, batch=MICRO)
            self.assert_same_course(name, "alone")
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2}"}
        name, ranks, parallel = runs[0]
        self.launch("killed", ranks, expect=137, env=kill, parallel=parallel, batch=MICRO)
        said = self.launch("killed", ranks, "--resume", "auto", parallel=parallel, batch=MICRO)
        self.assertNotIn("not bit for bit", said)
        self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                           for run in (name, "killed")))

    def test_a_checkpoint_of_stages_that_share_sequences_is_read_on_another_mesh(self):
        self.launch("alone", 1)
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 1}"}
        shards = {**STAGES, "shard": 2}
        runs = [("to-one", 4, STAGES, 1, None), ("from-one", 1, None, 4, STAGES),
                ("to-shards", 4, STAGES, 8, shards), ("from-shards", 8, shards, 4, STAGES)]
        for name, ranks, parallel, then, other in runs if support.LONG else runs[:1]:
            self.launch(name, ranks, expect=137, env=kill, parallel=parallel, batch=MICRO)
            self.launch(name, then, "--resume", "auto", *OTHER_MESH, parallel=other, batch=MICRO)
            self.assert_same_course(name, "alone")
            self.run_scaletrain("checkpoint", "verify", self.folder / name)

    def test_replicas_that_share_sequences_exchange_weights_as_others_do(self):
        syncs = [("outer", {"name": "diloco", "steps": 4, "fragments": 2}),
                 ("mean", {"name": "periodic", "steps": 2})]
        for name, sync in syncs if support.LONG else syncs[:1]:
            # With votes in each step, without which the lines of DiLoCo would be of replica 0.
            common = {"sync": sync, "ema": None, "early_stopping": {"patience": 99}}
            self.launch(name, 2, **common)
            self.launch(f"{name}-ring", 4, **common, parallel={"context": 2})
            self.assert_same_course(f"{name}-ring", name)

    def test_other_exchanges_beside_it_go_on_with_the_same_bits(self):
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2}"}
        runs = [("int8", {"compress": "int8"}),
                ("outer", {"sync": {"name": "diloco", "steps": 2}, "ema": None})]
        for name, changes in runs if support.LONG else runs[:1]:
            with self.subTest(name):
                changes = {**changes, "parallel": {"context": 2}}
                self.launch(f"{name}-whole", 4, **changes)
                self.launch(f"{name}-killed", 4, expect=137, env=kill, **changes)
                said = self.launch(f"{name}-killed", 4, "--resume", "auto", **changes)
                self.assertNotIn("not bit for bit", said)
                self.assertNotIn("the checkpoint is of another mesh", said)
                self.assertEqual(*(support.inspect(self.folder / f"{name}-{run}")["model_digest"]
                                   for run in ("whole", "killed")))

    def test_unsupported_context_layouts_are_refused_before_the_start(self):
        said = self.launch("tokens", 3, expect=2, parallel={"context": 3})
        self.assertIn(f"3 ranks divide a sequence into 6 chunks, and /data/context is {CONTEXT}", said)
        self.assertIn("use one of: 1, 2, 4, 8, 16", said)
        said = self.launch("ranks", 3, expect=2, parallel={"context": 2})
        self.assertIn("3 ranks are not a multiple of 2 = context 2", said)


if __name__ == "__main__":
    unittest.main()
