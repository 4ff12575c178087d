"""`scaletrain checkpoint diff|average` on weights of any kind."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy
import safetensors.numpy

from launcher import checkpoint_support
from launcher.checkpoint_support import state_of

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "scaletrain"


def run(*arguments):
    return subprocess.run([PROGRAM, "checkpoint", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)


class CheckpointWeights(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, **tensors):
        path = self.folder / name
        safetensors.numpy.save_file({key: numpy.asarray(value) for key, value in tensors.items()}, path)
        return path

    def printed(self, *arguments):
        done = run(*arguments)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

    def test_diff_says_what_differs_and_how_much(self):
        a = self.write("a", same=numpy.ones(3, numpy.float32), shape=numpy.ones(3, numpy.float32),
                       values=numpy.float32([3, 4]), gone=numpy.int8([1]))
        b = self.write("b", same=numpy.ones(3, numpy.float32), shape=numpy.ones((3, 1), numpy.float32),
                       values=numpy.float64([3, 1]), new=numpy.int8([1]))
        self.assertEqual(
            "only in A   gone: I8 [1]\n"
            "only in B   new: I8 [1]\n"
            "other shape shape: F32 [3] -> F32 [3,1]\n"
            "differs     values: F32 [2] -> F64 [2], 1 of 2 elements, by 3 at most, 0.6 relative\n"
            "4 of 5 tensors differ\n", self.printed("diff", a, b))
        found = json.loads(self.printed("diff", a, b, "--json"))
        self.assertEqual(5, found["tensors"])
        self.assertEqual(
            [("gone", "only_in_first"), ("new", "only_in_second"), ("shape", "shape"),
             ("values", "values")], [(each["name"], each["difference"]) for each in found["different"]])
        self.assertEqual({"name": "values", "difference": "values", "dtypes": ["F32", "F64"],
                          "shapes": [[2], [2]], "elements": 2, "differing": 1, "largest": 3.0,
                          "relative": 0.6}, found["different"][-1])
        self.assertEqual("0 of 4 tensors differ\n", self.printed("diff", a, a))

    def test_average_is_the_mean_in_doubles(self):
        random = numpy.random.default_rng(1)
        models = [{"w": random.normal(size=(4, 5)).astype(numpy.float32),
                   "h": random.normal(size=7).astype(numpy.float16), "n": numpy.int64([i])}
                  for i in range(3)]
        paths = [self.write(str(i), **model) for i, model in enumerate(models)]
        expected = {key: numpy.mean([model[key].astype(numpy.float64) for model in models],
                                    axis=0).astype(models[0][key].dtype) for key in ("w", "h")}
        for name in ["mean.safetensors", "mean.pt"]:
            out = self.folder / name
            self.assertEqual(f"{out}: the mean of 3 models, 3 tensors\n",
                             self.printed("average", *paths, "-o", out))
            # A safetensors file and one of PyTorch hold the same.
            self.assertEqual("0 of 3 tensors differ\n",
                             self.printed("diff", out, self.folder / "mean.safetensors"))
        found = safetensors.numpy.load_file(self.folder / "mean.safetensors")
        for key, value in expected.items():
            numpy.testing.assert_array_equal(value, found[key])
        self.assertEqual([0], found["n"].tolist())
        done = run("average", *paths, "-o", self.folder / "mean.pt")
        self.assertEqual(2, done.returncode)
        self.assertIn("exists already", done.stderr)

    def test_a_run_and_its_checkpoints_are_weights_too(self):
        for step in (10, 20):
            checkpoint_support.write_checkpoint(
                self.folder / "run", state_of(step, best_metric=0.5, best_step=10),
                '{"name": "test", "steps": 30}',
                model=safetensors.numpy.save({"fc.weight": numpy.full((3, 2), step, numpy.float32)}),
                optimizer=safetensors.numpy.save(
                    {"exp_avg/fc.weight": numpy.zeros((3, 2), numpy.float32)}))
        first = self.folder / "run" / "checkpoints" / "step-00000010"
        out = self.folder / "mean.safetensors"
        self.printed("average", first, self.folder / "run", "-o", out)
        self.assertEqual([15.0], numpy.unique(safetensors.numpy.load_file(out)["fc.weight"]).tolist())
        self.assertEqual("differs     fc.weight: F32 [3,2], 6 of 6 elements, by 10 at most, 1 relative\n"
                         "1 of 1 tensor differs\n", self.printed("diff", first, self.folder / "run"))

    def test_what_cannot_be_averaged_is_refused(self):
        a = self.write("a", w=numpy.ones(3, numpy.float32))
        b = self.write("b", w=numpy.ones(4, numpy.float32))
        done = run("average", a, b, "-o", self.folder / "out")
        self.assertEqual(65, done.returncode)
        self.assertIn('has "w" as F32 [4], where the first has F32 [3]', done.stderr)
        self.assertFalse((self.folder / "out").exists())
        self.assertEqual(2, run("average", a, "-o", self.folder / "out").returncode)
        exports = []
        for names in ("cat", "dog"), ("dog", "cat"):
            folder = self.folder / names[0]
            folder.mkdir()
            safetensors.numpy.save_file({"w": numpy.ones(2, numpy.float32)},
                                        folder / "model.safetensors")
            (folder / "recipe.json").write_text("{}")
            (folder / "classes.json").write_text(json.dumps(names))
            exports.append(folder)
        done = run("average", *exports, "-o", self.folder / "out")
        self.assertEqual(65, done.returncode)
        self.assertIn(f'{exports[1]}: has the classes "dog", "cat", and {exports[0]} has "cat", "dog"\n',
                      done.stderr)
        for number, folder in enumerate(exports):
            (folder / "classes.json").unlink()
            (folder / "tokenizer.json").write_text(f"[{number}]")
        done = run("average", *exports, "-o", self.folder / "out")
        self.assertEqual(65, done.returncode)
        self.assertIn(f"{exports[1]}: is of the tokenizer tokenizer.json ", done.stderr)
        self.assertEqual(65, run("diff", a, self.folder / "absent").returncode)


if __name__ == "__main__":
    unittest.main()
