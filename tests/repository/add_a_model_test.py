"""docs/add-a-model.md is followed: its row and its file make a model."""
import json
import pathlib
import struct
import subprocess
import tempfile
import unittest

import page


def tensor_names(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return sorted(set(json.loads(data[8:8 + size])) - {"__metadata__"})


class AddAModel(unittest.TestCase):
    def init(self, program, **keys):
        recipe, out = self.folder / "recipe.json", self.folder / "out.safetensors"
        recipe.write_text(json.dumps({
            "model": {"name": "logistic", "num_classes": 10, **keys},
            "data": {"train": {"shards": "unused.tar"}, "image_size": 8}, "epochs": 1,
            "optimizer": {"name": "sgd", "lr": 0.1}, "output": "unused"}))
        done = subprocess.run([program, "init", recipe, out], timeout=page.LIMIT_S,
                              capture_output=True, text=True)
        return done, out

    def test_the_page_makes_a_model(self):
        if not (page.PROGRAMS / "parity_program").exists():
            self.skipTest("built without LibTorch")
        with tempfile.TemporaryDirectory() as name:
            self.folder = pathlib.Path(name)
            program = page.Page("docs/add-a-model.md", "lib/recipe/models.def",
                                "lib/nn/models.cpp").program(self, self.folder)
            done, out = self.init(program)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(["layer.bias", "layer.weight"], tensor_names(out))
            done, out = self.init(program, bias=False)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(["layer.weight"], tensor_names(out))
            done, _ = self.init(program, bais=False)
            self.assertEqual(2, done.returncode)
            self.assertIn("/model/bais", done.stderr)
            self.assertIn('did you mean "bias"?', done.stderr)


if __name__ == "__main__":
    unittest.main()
