"""Ranks that share each layer of a model train as one rank does, and their checkpoints are read on any
mesh."""

import json
import unittest

from end_to_end import support, text_test

CONTEXT = text_test.CONTEXT
# Of 257 tokens no two ranks have the same number.
GPT2 = {**text_test.MODEL, "heads": 4, "dropout": 0.0}
LLAMA = {"name": "llama", "vocab_size": 257, "positions": CONTEXT, "dim": 32, "depth": 2, "heads": 4,
         "kv_heads": 2, "hidden": 48}
STEPS = 8


class TensorTest(text_test.TextTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.tokenize()

    def launch(self, name, ranks, *flags, expect=0, env=None, steps=STEPS, model=GPT2, **changes):
        path = self.recipe(name, model=model, optimizer=text_test.ADAMW, data=self.data,
                           batch={"global": 8, "per_device": 4}, clip={"norm": 1.0},
                           ema={"decay": 0.9}, steps=steps,
                           validate={"every": {"steps": STEPS // 2}},
                           checkpoint={"every": {"steps": STEPS // 2}}, **changes)
        result = self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect, env=env)
        return result.stderr

    def test_meshes_train_as_one_rank_does(self):
        meshes = [(2, {"tensor": 2}), (4, {"tensor": 2, "sequence": True})]
        for name, model, own in (("gpt2", GPT2, meshes[:1]), ("llama", LLAMA, meshes[1:])):
            self.launch(f"{name}-1", 1, model=model)
            for ranks, parallel in meshes if support.LONG else own:
                run = f"{name}-{ranks}"
                self.launch(run, ranks, model=model, parallel=parallel)
                self.assert_same_course(run, f"{name}-1")

    def test_a_checkpoint_is_read_on_another_mesh_and_back(self):
        self.launch("alone", 1)
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 1}"}
        other_mesh = ("--allow", "parallel.tensor", "--allow", "parallel.sequence")
        evaluated = [("alone", 1), ("back", 2), ("back", 1)]
        if support.LONG:
            self.launch("there", 2, expect=137, env=kill, parallel={"tensor": 2, "sequence": True})
            self.launch("there", 1, "--resume", "auto", *other_mesh)
            self.assert_same_course("there", "alone")
            evaluated.append(("there", 2))
        self.launch("back", 1, expect=137, env=kill)
        self.launch("back", 2, "--resume", "auto", *other_mesh, parallel={"tensor": 2})
        self.assert_same_course("back", "alone")
        losses = [json.loads(self.run_scaletrain("eval", self.folder / run, "--json", "--nproc",
                                                 ranks).stdout)["measures"]["loss"]
                  for run, ranks in evaluated]
        for loss in losses[1:]:
            self.assertAlmostEqual(losses[0], loss, delta=1e-5 * losses[0])

    def test_a_killed_run_ends_with_the_bits_of_one_left_alone(self):
        parallel = {"tensor": 2}
        self.launch("whole", 2, parallel=parallel)
        kill = {"SCALETRAIN_FAULT": f"kill@{STEPS // 2 + 2}"}
        self.launch("killed", 2, expect=137, env=kill, parallel=parallel)
        said = self.launch("killed", 2, "--resume", "auto", parallel=parallel)
        self.assertNotIn("not bit for bit", said)
        self.assertEqual(*(support.inspect(self.folder / run)["model_digest"]
                           for run in ("whole", "killed")))

    def test_unsupported_tensor_layouts_are_refused_before_the_start(self):
        said = self.launch("heads", 3, expect=2, parallel={"tensor": 3})
        self.assertIn('3 ranks cannot divide "heads" of the model, which is 4', said)
        self.assertIn("use one of: 1, 2, 4", said)
        said = self.launch("ranks", 3, expect=2, parallel={"tensor": 2})
        self.assertIn("3 ranks are not a multiple of 2 = tensor 2", said)


if __name__ == "__main__":
    unittest.main()
