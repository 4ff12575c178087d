"""The module order of lib/: an include never points back up, and only to what CMake declares."""
import pathlib
import re
import unittest

import tracked

ORDER = ["core", "recipe", "format", "storage", "data", "observe", "dist", "input", "nn",
         "precision", "optim", "parallel", "checkpoint", "train"]
TORCH_FREE = ORDER[:ORDER.index("dist")]
# What one of these needs from another arrives as a value from train.
STRANGERS = ["input", "nn", "precision", "optim", "parallel", "checkpoint"]
LAUNCHER_MAY_USE = ["core", "recipe", "format", "observe"]
# libscaletrain_cuda.so implements an interface of dist and is opened by it: nothing includes it.
CUDA_MAY_USE = ["core", "dist", "cuda"]
# The precompiled header belongs to the build, not to a module.
NO_MODULE = ["torch_pch"]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
MODULE = re.compile(r"scaletrain_module\((\w+)([^)]*)\)")


def module_of(path):
    """("lib", module), ("launcher", "") or ("app", "") of a path."""
    parts = pathlib.PurePosixPath(path).parts
    return (parts[0], parts[1]) if parts[0] == "lib" else (parts[0], "")


def reachable(module, dependencies):
    """What a module may use by its CMake DEPS, which are public: their closure."""
    seen, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += dependencies.get(name, [])
    return seen


def fault_of_module(module, used, dependencies):
    if used == module:
        return None
    if ORDER.index(used) > ORDER.index(module):
        return f"points back up: {module} comes before {used}"
    if module in STRANGERS and used in STRANGERS:
        return f"{module} and {used} do not know each other"
    if used not in reachable(module, dependencies):
        return f"scaletrain::{used} is not in the DEPS of lib/{module}/CMakeLists.txt"
    return None


def fault(path, quote, included, dependencies):
    """What is wrong with one include line, or None."""
    top, module = module_of(path)
    if module in NO_MODULE:
        return None
    if TORCH.match(included):
        torch_free = module in TORCH_FREE or top == "launcher" or path.startswith("app/data/")
        return "this part is built without LibTorch" if torch_free else None
    if quote == "<":
        return None
    used_top, used = module_of(included)
    if used_top not in ("lib", "launcher", "app"):
        return "own headers are included by their path from the root"
    if module == "cuda":
        return None if used in CUDA_MAY_USE else "cuda implements what dist declares, nothing else"
    if used_top == "lib" and used not in ORDER:
        return f"lib/{used} has no place in the order of modules"
    if top == "lib":
        if used_top != "lib":
            return f"lib does not know {used_top}"
        return fault_of_module(module, used, dependencies)
    if used_top == "lib":
        allowed = (LAUNCHER_MAY_USE if top == "launcher" else
                   TORCH_FREE if path.startswith("app/data/") else ORDER)
        return None if used in allowed else f"{top} may use {', '.join(allowed)} of lib only"
    return None if used_top == top else f"{top} does not know {used_top}"


def faults(files, dependencies):
    """files: path -> text. One line for each wrong include."""
    found = []
    for path, text in sorted(files.items()):
        for match in INCLUDE.finditer(text):
            reason = fault(path, match[1], match[2], dependencies)
            if reason:
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: {match[2]}: {reason}")
    return found


def declared_dependencies():
    dependencies = {}
    for path in tracked.files("lib/*/CMakeLists.txt"):
        for name, rest in MODULE.findall(tracked.text(path)):
            dependencies[name] = re.findall(r"scaletrain::(\w+)", rest)
    return dependencies


class Layers(unittest.TestCase):
    def test_no_include_points_back_up(self):
        paths = tracked.files("lib/*.h", "lib/*.cpp", "launcher/*.h", "launcher/*.cpp",
                                         "app/*.h", "app/*.cpp")
        self.assertGreater(len(paths), 50)
        files = {path.as_posix(): tracked.text(path) for path in paths}
        self.assertEqual("", "\n".join(faults(files, declared_dependencies())))

    def test_every_folder_of_lib_has_its_place(self):
        folders = {path.parts[1] for path in tracked.files("lib/*/*")}
        self.assertEqual({*ORDER, *NO_MODULE, "cuda"}, folders)

    def test_cmake_dependencies_follow_the_order(self):
        for module, used in declared_dependencies().items():
            for name in used:
                self.assertLess(ORDER.index(name), ORDER.index(module), f"{module} -> {name}")


class TheCheckItself(unittest.TestCase):
    """Each kind of wrong include is found, with its place."""

    DEPENDENCIES = {"data": ["recipe"], "recipe": ["core"], "optim": ["recipe"],
                    "train": ["optim", "nn", "data"], "nn": ["recipe"]}

    def check(self, path, line, expected):
        text = "// A comment.\n" + line + "\n"
        self.assertEqual(expected, faults({path: text}, self.DEPENDENCIES))

    def test_right_includes(self):
        self.check("lib/data/loader.cpp", '#include "lib/data/loader.h"', [])
        self.check("lib/data/loader.cpp", '#include "lib/core/error.h"', [])
        self.check("lib/optim/sgd.cpp", "#include <ATen/ATen.h>", [])
        self.check("lib/train/loop.cpp", '#include "lib/nn/model.h"', [])
        self.check("lib/cuda/a.cpp", '#include "lib/dist/group.h"', [])
        self.check("launcher/main.cpp", '#include "lib/recipe/load.h"', [])
        self.check("app/worker/main.cpp", '#include "lib/train/loop.h"', [])
        self.check("app/data/main.cpp", '#include "lib/observe/progress.h"', [])

    def test_wrong_includes(self):
        for path, line, reason in [
                ("lib/core/a.cpp", '#include "lib/recipe/load.h"',
                 "lib/recipe/load.h: points back up: core comes before recipe"),
                ("lib/optim/a.cpp", '#  include "lib/nn/model.h"',
                 "lib/nn/model.h: optim and nn do not know each other"),
                ("lib/data/a.cpp", '#include "lib/format/tar.h"',
                 "lib/format/tar.h: scaletrain::format is not in the DEPS of "
                 "lib/data/CMakeLists.txt"),
                ("lib/data/a.h", "#include <torch/types.h>",
                 "torch/types.h: this part is built without LibTorch"),
                ("launcher/a.cpp", "#include <c10/util/Exception.h>",
                 "c10/util/Exception.h: this part is built without LibTorch"),
                ("launcher/a.cpp", '#include "lib/data/loader.h"',
                 "lib/data/loader.h: launcher may use core, recipe, format, observe of lib only"),
                ("lib/train/a.cpp", '#include "launcher/cli.h"',
                 "launcher/cli.h: lib does not know launcher"),
                ("lib/cuda/a.cpp", '#include "lib/nn/model.h"',
                 "lib/nn/model.h: cuda implements what dist declares, nothing else"),
                ("lib/dist/a.cpp", '#include "lib/cuda/a.h"',
                 "lib/cuda/a.h: lib/cuda has no place in the order of modules"),
                ("app/a.cpp", '#include "launcher/cli.h"',
                 "launcher/cli.h: app does not know launcher"),
                ("app/data/a.cpp", "#include <ATen/ATen.h>",
                 "ATen/ATen.h: this part is built without LibTorch"),
                ("app/data/a.cpp", '#include "lib/train/loop.h"',
                 "lib/train/loop.h: app may use core, recipe, format, storage, data, observe of "
                 "lib only"),
                ("lib/data/a.cpp", '#include "loader.h"',
                 "loader.h: own headers are included by their path from the root"),
                ("lib/data/a.cpp", '#include "lib/utils/a.h"',
                 "lib/utils/a.h: lib/utils has no place in the order of modules")]:
            self.check(path, line, [f"{path}:2: {reason}"])


if __name__ == "__main__":
    unittest.main()
