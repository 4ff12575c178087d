"""The order of lib/'s modules and of the launcher's folders: an include never points back up, in lib
only to what CMake declares, and no files include each other in a circle."""
import collections
import pathlib
import re
import unittest

import tracked

ORDER = ["core", "recipe", "format", "exchange", "replica", "storage", "mirror", "data", "observe", "track", "dist",
         "units", "input", "nn", "precision", "optim", "parallel", "local_sgd", "checkpoint", "generate", "task",
         "engine", "train", "report"]
TORCH_FREE = ORDER[:ORDER.index("dist")]
# What one of these needs from another arrives as a value from train.
STRANGERS = ["input", "nn", "precision", "optim", "parallel", "local_sgd", "checkpoint"]
LAUNCHER_MAY_USE = ["core", "recipe", "format", "exchange", "replica", "observe"]
# The launcher's folders; "": cli and main, which know all. Commands that have a folder know the
# common ones in commands/, and no other command but where the order of these says so; explain knows
# those that it explains.
LAUNCHER_ORDER = ["platform", "devices", "flags", "place", "output", "workers", "agents", "jobs/checks", "jobs", "jobs/nodes", "runs",
                  "plan", "commands", "commands/watch", "commands/lr_find", "commands/start", "commands/slurm",
                  "commands/queue", "commands/doctor", "commands/explain", "commands/plan", "commands/prove",
                  "commands/lint", "commands/dry_run", "commands/kubernetes", "commands/bench",
                  "commands/runs", "commands/trace", "commands/shell", ""]
LAUNCHER_STRANGERS = ["commands/queue", "commands/doctor", "commands/kubernetes",
                      "commands/bench", "commands/runs", "commands/trace", "commands/shell"]
# libscaletrain_cuda.so implements an interface of dist and is opened by it: nothing includes it.
CUDA_MAY_USE = ["core", "dist", "cuda"]
# The precompiled header belongs to the build, not to a module.
NO_MODULE = ["torch_pch"]

# The folders of lib/data, each knows those before it.
DATA_ROOMS = ["image", "augment", "order", "set", "loader"]
# The folders of lib/recipe: what a schema is made of, tables of names and types of values, a file for
# each section, the whole recipe.
RECIPE_ROOMS = {"schema", "catalog", "sections", "sections/data", "sections/parallel", "lint", ""}

MOST_UNITS = 25  # of a folder: a header and its source are one unit

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
MODULE = re.compile(r"scaletrain_module\((\w+)([^)]*)\)")


def module_of(path):
    """("lib", module), ("launcher", "") or ("app", "") of a path."""
    parts = pathlib.PurePosixPath(path).parts
    return (parts[0], parts[1]) if parts[0] == "lib" else (parts[0], "")


def launcher_folder(path):
    """"commands/slurm" of launcher/commands/slurm/tool.h, "" of launcher/cli.h."""
    return "/".join(pathlib.PurePosixPath(path).parts[1:-1])


def fault_in_launcher(path, included):
    folder, used = launcher_folder(path), launcher_folder(included)
    for name in (folder, used):
        if name not in LAUNCHER_ORDER:
            return f"launcher/{name} has no place in the order of folders"
    if LAUNCHER_ORDER.index(used) > LAUNCHER_ORDER.index(folder):
        return f"points back up: {folder} comes before {used or 'cli'}"
    if folder != used and folder in LAUNCHER_STRANGERS and used in LAUNCHER_STRANGERS:
        return f"{folder} and {used} do not know each other"
    return None


def room_faults(files, rooms):
    """Includes in lib/MODULE/ROOM/ of a room that comes later in `rooms`."""
    found = []
    for path, text in sorted(files.items()):
        module, room = path.split("/")[1:3]
        for match in INCLUDE.finditer(text):
            used = match[2].split("/")
            if used[:2] == ["lib", module] and rooms.index(used[2]) > rooms.index(room):
                found.append(f"{path}: {match[2]}: points back up: {room} comes before {used[2]}")
    return found


def units_of(files):
    """files: path -> text. A header and its source are one unit: unit -> units that it includes."""
    units = {}
    for path, text in files.items():
        unit = path.rsplit(".", 1)[0]
        used = {match[2].rsplit(".", 1)[0] for match in INCLUDE.finditer(text) if match[1] == '"'}
        units.setdefault(unit, set()).update(used - {unit})
    return units


def folders_of(files):
    """files: path -> text. Folder -> the other folders whose headers its files include."""
    folders = {}
    for unit, used in units_of(files).items():
        folder = unit.rsplit("/", 1)[0]
        folders.setdefault(folder, set()).update({name.rsplit("/", 1)[0] for name in used} - {folder})
    return folders


def circles(units):
    """units: name -> names that it knows. Each set of names that reach one another, sorted."""
    reached = {}
    for start in units:
        seen, waiting = set(), [start]
        while waiting:
            for name in units.get(waiting.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)
        reached[start] = seen
    found = {tuple(sorted(other for other in reached[name] if name in reached.get(other, ())))
             for name in units if name in reached[name]}
    return sorted(found)


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
    if used_top != top:
        return f"{top} does not know {used_top}"
    return fault_in_launcher(path, included) if top == "launcher" else None


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


def sources(*folders):
    """path -> text of all C++ files below `folders`."""
    paths = tracked.files(*(f"{folder}/*.{ending}" for folder in folders for ending in ("h", "cpp")))
    return {path.as_posix(): tracked.text(path) for path in paths}


class Layers(unittest.TestCase):
    def test_no_include_points_back_up(self):
        files = sources("lib", "launcher", "app")
        self.assertGreater(len(files), 50)
        self.assertEqual("", "\n".join(faults(files, declared_dependencies())))

    def test_no_files_include_each_other_in_a_circle(self):
        for folder in ("lib", "launcher", "app"):
            units = units_of(sources(folder))
            self.assertGreater(len(units), 50)
            self.assertEqual([], circles(units), folder)

    def test_no_folders_include_each_other_in_a_circle(self):
        folders = folders_of(sources("lib", "launcher", "app"))
        self.assertGreater(len(folders), 50)
        self.assertEqual([], circles(folders))

    def test_no_folder_has_more_than_25_units(self):
        units = collections.Counter(name.rsplit("/", 1)[0] for name in units_of(sources("lib", "launcher", "app")))
        self.assertEqual({}, {folder: count for folder, count in units.items() if count > MOST_UNITS})

    def test_the_rooms_of_data_are_one_way(self):
        files = sources("lib/data")
        rooms = {path.split("/")[2] for path in files}
        self.assertEqual(set(DATA_ROOMS), rooms)
        self.assertEqual("", "\n".join(room_faults(files, DATA_ROOMS)))

    def test_the_schema_of_recipes_knows_no_key(self):
        files = sources("lib/recipe")
        rooms = {"/".join(path.split("/")[2:-1]) for path in files}
        self.assertEqual(RECIPE_ROOMS, rooms)
        schema = {path: text for path, text in files.items() if path.startswith("lib/recipe/schema/")}
        self.assertEqual([], [f"{path}: {match[2]}" for path, text in schema.items()
                              for match in INCLUDE.finditer(text)
                              if match[2].startswith("lib/recipe/")
                              and not match[2].startswith("lib/recipe/schema/")])

    def test_every_folder_of_the_launcher_has_its_place(self):
        folders = {launcher_folder(path) for path in sources("launcher")}
        self.assertEqual(set(LAUNCHER_ORDER), folders)

    def test_every_folder_of_lib_has_its_place(self):
        folders = {path.parts[1] for path in tracked.files("lib/*/*")}
        self.assertEqual({*ORDER, *NO_MODULE, "cuda"}, folders)

    def test_every_file_of_a_model_has_a_row_in_models_def(self):
        rows = tracked.text("lib/recipe/catalog/models.def")
        names = re.findall(r"^SCALETRAIN_MODEL\((\w+)", rows, re.MULTILINE)
        stems = {path.stem for path in tracked.files("lib/nn/models/*")}
        self.assertIn("resnet", stems)
        # A family's file has the beginning of its members' names.
        self.assertEqual([], [stem for stem in stems if not any(name.startswith(stem) for name in names)])

    def test_the_readme_has_the_modules_in_their_order(self):
        self.assertEqual(ORDER, re.findall(r"^\| `(\w+)` \|", tracked.text("README.md"), re.M))

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
        self.check("lib/data/loader.cpp", '#include "lib/data/loader/image_stream.h"', [])
        self.check("lib/data/loader.cpp", '#include "lib/core/error.h"', [])
        self.check("lib/optim/sgd.cpp", "#include <ATen/ATen.h>", [])
        self.check("lib/train/loop.cpp", '#include "lib/nn/model.h"', [])
        self.check("lib/cuda/a.cpp", '#include "lib/dist/group.h"', [])
        self.check("launcher/main.cpp", '#include "lib/recipe/load.h"', [])
        self.check("launcher/cli.cpp", '#include "launcher/commands/queue/grid.h"', [])
        self.check("launcher/commands/queue/grid.cpp", '#include "launcher/commands/slurm/tool.h"', [])
        self.check("launcher/jobs/job.cpp", '#include "launcher/workers/failure.h"', [])
        self.check("app/worker/main.cpp", '#include "lib/train/loop.h"', [])
        self.check("app/data/main.cpp", '#include "lib/observe/progress.h"', [])

    def test_wrong_includes(self):
        for path, line, reason in [
                ("lib/core/a.cpp", '#include "lib/recipe/load.h"',
                 "lib/recipe/load.h: points back up: core comes before recipe"),
                ("lib/optim/a.cpp", '#  include "lib/nn/model.h"',
                 "lib/nn/model.h: optim and nn do not know each other"),
                ("lib/data/a.cpp", '#include "lib/format/tar/tar.h"',
                 "lib/format/tar/tar.h: scaletrain::format is not in the DEPS of "
                 "lib/data/CMakeLists.txt"),
                ("lib/data/a.h", "#include <torch/types.h>",
                 "torch/types.h: this part is built without LibTorch"),
                ("launcher/a.cpp", "#include <c10/util/Exception.h>",
                 "c10/util/Exception.h: this part is built without LibTorch"),
                ("launcher/a.cpp", '#include "lib/data/loader/image_stream.h"',
                 "lib/data/loader/image_stream.h: launcher may use core, recipe, format, exchange, "
                 "replica, observe of lib only"),
                ("lib/train/a.cpp", '#include "launcher/cli.h"',
                 "launcher/cli.h: lib does not know launcher"),
                ("lib/cuda/a.cpp", '#include "lib/nn/model.h"',
                 "lib/nn/model.h: cuda implements what dist declares, nothing else"),
                ("lib/dist/a.cpp", '#include "lib/cuda/a.h"',
                 "lib/cuda/a.h: lib/cuda has no place in the order of modules"),
                ("launcher/workers/a.cpp", '#include "launcher/jobs/job.h"',
                 "launcher/jobs/job.h: points back up: workers comes before jobs"),
                ("launcher/jobs/a.cpp", '#include "launcher/cli.h"',
                 "launcher/cli.h: points back up: jobs comes before cli"),
                ("launcher/commands/a.cpp", '#include "launcher/commands/slurm/tool.h"',
                 "launcher/commands/slurm/tool.h: points back up: commands comes before "
                 "commands/slurm"),
                ("launcher/commands/shell/a.cpp", '#include "launcher/commands/queue/grid.h"',
                 "launcher/commands/queue/grid.h: commands/shell and commands/queue do not know "
                 "each other"),
                ("launcher/jobs/a.cpp", '#include "launcher/tools/a.h"',
                 "launcher/tools/a.h: launcher/tools has no place in the order of folders"),
                ("app/a.cpp", '#include "launcher/cli.h"',
                 "launcher/cli.h: app does not know launcher"),
                ("app/data/a.cpp", "#include <ATen/ATen.h>",
                 "ATen/ATen.h: this part is built without LibTorch"),
                ("app/data/a.cpp", '#include "lib/train/loop.h"',
                 "lib/train/loop.h: app may use core, recipe, format, exchange, replica, storage, "
                 "mirror, data, observe, track of lib only"),
                ("lib/data/a.cpp", '#include "loader.h"',
                 "loader.h: own headers are included by their path from the root"),
                ("lib/data/a.cpp", '#include "lib/utils/a.h"',
                 "lib/utils/a.h: lib/utils has no place in the order of modules")]:
            self.check(path, line, [f"{path}:2: {reason}"])

    def test_a_room_that_comes_later_is_found(self):
        files = {"lib/data/set/a.h": '#include "lib/data/order/b.h"\n#include "lib/core/c.h"\n',
                 "lib/data/order/b.cpp": '#include "lib/data/order/b.h"\n'}
        self.assertEqual([], room_faults(files, DATA_ROOMS))
        files["lib/data/order/b.cpp"] += '#include "lib/data/set/a.h"\n'
        self.assertEqual(["lib/data/order/b.cpp: lib/data/set/a.h: points back up: order comes "
                          "before set"], room_faults(files, DATA_ROOMS))

    def test_a_circle_of_folders_is_found(self):
        files = {"lib/a/x/one.h": '#include "lib/a/two.h"\n', "lib/a/three.cpp": '#include "lib/a/x/one.h"\n'}
        self.assertEqual([("lib/a", "lib/a/x")], circles(folders_of(files)))
        del files["lib/a/three.cpp"]
        self.assertEqual([], circles(folders_of(files)))

    def test_a_circle_is_found_whole_and_once(self):
        files = {"launcher/a.h": '#include "launcher/b.h"\n',
                 "launcher/b.cpp": '#include "launcher/b.h"\n#include "launcher/c.h"\n',
                 "launcher/c.cpp": '  # include "launcher/a.h"\n#include <vector>\n',
                 "launcher/d.h": '#include "launcher/a.h"\n#include "lib/core/error.h"\n',
                 "launcher/e.cpp": '#include "launcher/f.h"\n',
                 "launcher/f.cpp": '#include "launcher/e.h"\n'}
        self.assertEqual([("launcher/a", "launcher/b", "launcher/c"),
                          ("launcher/e", "launcher/f")], circles(units_of(files)))
        del files["launcher/c.cpp"], files["launcher/f.cpp"]
        self.assertEqual([], circles(units_of(files)))


if __name__ == "__main__":
    unittest.main()
