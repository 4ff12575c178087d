"""docs/internals/own-model.md is followed: from an installed tree its project builds a worker that trains, and its
Python file a model that trains too."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import tracked

sys.path.insert(0, str(tracked.ROOT / "tests"))
from end_to_end import support  # noqa: E402  (behind the path)

PAGE = "docs/internals/own-model.md"
FILES = re.compile(r"`([\w.]+)`[^\n]*:\n\n```(?!python)\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = "cmake --install build/release --prefix ~/scaletrain"
BUILD = """
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=$HOME/scaletrain
cmake --build build
"""
TRAIN = "~/scaletrain/bin/scaletrain launch --worker build/my_worker recipe.json"
TRAIN_SCRIPT = """
scaletrain launch --set 'model={"name": "torchscript", "file": "model.pt", "num_classes": 10}' --set output=runs/script recipe.json
"""


def compiler_cache(folder):
    """The variables with which CMake compiles a project below `folder` through this user's ccache, whose keys
    do not hold the folder's name."""
    if not shutil.which("ccache"):
        return {}
    cache = subprocess.run(["ccache", "--get-config", "cache_dir"], check=True, capture_output=True, text=True)
    return {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": cache.stdout.strip(),
            "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}


class OwnModel(support.RunTestCase):
    def setUp(self):
        super().setUp()
        if not (support.BIN / "scaletrain-worker").exists():
            self.skipTest("built without LibTorch")
        text = tracked.text(pathlib.Path(PAGE))
        files = dict(FILES.findall(text))
        self.assertEqual(["CMakeLists.txt", "main.cpp", "my_models.def", "recipe.json", "two_layers.cpp"],
                         sorted(files))
        self.project = self.folder / "project"
        self.project.mkdir()
        for name, code in files.items():
            (self.project / name).write_text(code)
        (code,) = PYTHON.findall(text)
        (self.project / "model.py").write_text(code)
        (self.project / "digits").symlink_to(support.DIGITS)

    def sh(self, code, folder=None, expect=0):
        environment = {**os.environ, **compiler_cache(self.folder), "HOME": str(self.folder),
                       "PATH": f"{self.folder}/scaletrain/bin:{os.environ['PATH']}"}
        environment.pop("SCALETRAIN_TORCH", None)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", code], cwd=folder or self.project,
                              env=environment, capture_output=True, text=True, timeout=support.TIMEOUT_S)
        self.assertEqual(expect, done.returncode, f"{code}\n{done.stdout}{done.stderr}")
        return done

    def top1(self, run):
        return [record["top1"] for record in support.records(self.project / "runs" / run, "eval")]

    def test_the_page(self):
        self.sh(INSTALL.replace("build/release", str(support.BIN.parent)), self.folder)
        built = self.sh(BUILD)
        self.assertNotIn("warning", built.stdout + built.stderr)
        registry = json.loads((self.project / "build/my_worker.registry.json").read_text())
        self.assertIn("two_layers", [row["name"] for row in registry["models"]])

        self.sh(TRAIN)
        self.assertGreater(self.top1("two_layers")[-1], 0.8)
        self.sh("scaletrain resume --set epochs=3 --allow epochs runs/two_layers")
        self.assertEqual(3, len(self.top1("two_layers")))
        stored = json.loads((self.project / "runs/two_layers/recipe.json").read_text())
        self.assertEqual(str(self.project / "build/my_worker"), stored["worker"])
        for change, found in (("hiddn=3", 'model.hiddn: "hiddn" is not a key here\n  did you mean "hidden"?'),
                              ("hidden=0", "model.hidden: 0 is out of range\n  use an integer from 1 to 4096"),
                              ("activation=sine", 'model.activation: "sine" is not a choice here')):
            done = self.sh(f"{TRAIN} --set model.{change}", expect=2)
            self.assertIn(f"--set {found}", done.stderr)
        done = self.sh("scaletrain launch recipe.json", expect=2)
        self.assertRegex(done.stderr, r'recipe.json:2: /model/name: "two_layers" is not a model')

        # The same from Python: tests/parity/torchscript_test.py compares gradients.
        self.sh(f"{sys.executable} model.py")
        self.sh(TRAIN_SCRIPT)
        self.assertGreater(self.top1("script")[-1], 0.8)


if __name__ == "__main__":
    support.unittest.main()
