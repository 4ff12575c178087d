"""Programs with the model, the task, the optimizer and the key of the pages on adding one: rows and files are
compiled with the flags of the build, in three units, and linked in front of its libraries."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import tracked

BLOCK = re.compile(r"^ *```cpp\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PROGRAMS = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ""))
LIMIT_S = 600
# The first block of a page is a row of this file, the second is a file; the source makes things by name.
PAGES = {"docs/internals/add-a-model.md": ("lib/recipe/catalog/models.def", "lib/nn/models.cpp"),
         "docs/internals/add-a-task.md": ("lib/recipe/catalog/tasks.def", "lib/task/tasks.cpp"),
         "docs/internals/add-an-optimizer.md": ("lib/recipe/catalog/optimizers.def", "lib/optim/optimizer.cpp")}
# Sources that have the rows as values; programs without LibTorch have these alone.
LISTS = ["lib/recipe/catalog/lists.cpp", "lib/recipe/catalog/task.cpp"]


def run(*words, **options):
    return subprocess.run(list(map(str, words)), timeout=LIMIT_S, capture_output=True, text=True,
                          **options)


def programs(test, folder, names):
    """Programs of the build with the things of all pages, in `folder`."""
    things, tasks = [], []
    for page, (rows, registry) in PAGES.items():
        row, code = (re.sub(r"^   ", "", block, flags=re.MULTILINE)
                     for block in BLOCK.findall((tracked.ROOT / page).read_text())[:2])
        copy = folder / rows
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((tracked.ROOT / rows).read_text().replace("#undef", row + "\n#undef", 1))
        thing = folder / f"{pathlib.Path(page).stem}.cpp"
        thing.write_text(code)
        (tasks if "task" in page else things).extend([thing, tracked.ROOT / registry])
    # Each with a library that a program must have to be linked with it.
    objects = [(compiled(test, folder, name, sources), library) for name, sources, library in (
        ("lists", [tracked.ROOT / source for source in LISTS], "scaletrain_recipe.a"),
        ("things", things, "scaletrain_optim.a"), ("tasks", tasks, "scaletrain_task.a"))]
    return [linked(test, objects, folder / name) for name in names]


# The first block of the page on adding a key is a member of this section, the second its description.
KEY_PAGE, KEY_SECTION = "docs/internals/add-a-key.md", "lib/recipe/sections/clip"


def program_with_key(test, folder, source):
    """A program of `source` with the key of the page on adding one."""
    member, description = (re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in
                           BLOCK.findall((tracked.ROOT / KEY_PAGE).read_text()))
    for suffix, place, text in ((".h", "\n};\n", "\n" + member + "};\n"),
                                (".cpp", ".exactly_one(", description + ".exactly_one(")):
        written = (tracked.ROOT / (KEY_SECTION + suffix)).read_text()
        test.assertEqual(1, written.count(place))
        copy = folder / (KEY_SECTION + suffix)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(written.replace(place, text))
    main = folder / "with_key.cpp"
    main.write_text(source)
    unit = compiled(test, folder, "key", [folder / (KEY_SECTION + ".cpp"), main])
    return linked(test, [(unit, "scaletrain_recipe.a")], folder / "scaletrain")


def compiled(test, folder, name, sources):
    """The object of one unit of `sources`, which is compiled as the build compiles lib/nn."""
    entries = json.loads((PROGRAMS.parent / "compile_commands.json").read_text())
    entry = next(entry for entry in entries if entry["file"].endswith("lib/nn/models.cpp") or
                 "lib/nn/scaletrain_nn/unity_" in entry["file"])
    command = shlex.split(entry["command"])
    command = command[:command.index("-c")]
    del command[command.index("-o"):command.index("-o") + 2]
    compiler = next(i for i, word in enumerate(command) if word.endswith("c++"))
    command.insert(compiler + 1, f"-I{folder}")
    unit, target = folder / f"{name}_unit.cpp", folder / f"{name}.o"
    # Names below the folders of -I: the compiler cache is to know the unit wherever the clone is.
    names = [source.relative_to(folder if source.is_relative_to(folder) else tracked.ROOT) for source in sources]
    unit.write_text("".join(f'#include "{name}"\n' for name in names))
    done = run(*command, "-c", unit, "-o", target, cwd=entry["directory"])
    test.assertEqual((0, ""), (done.returncode, done.stderr))  # no warning either
    return target


def linked(test, objects, target):
    listed = run("ninja", "-C", PROGRAMS.parent, "-t", "commands", target.name, check=True)
    command = shlex.split(listed.stdout.splitlines()[-1])
    command = command[command.index("&&") + 1:]
    command = command[:command.index("&&")]
    command[command.index("-o") + 1] = str(target)
    own = [str(made) for made, library in objects if any(library in word for word in command)]
    command[1:1] = ["-Wl,--allow-multiple-definition", *own]
    done = run(*command, cwd=PROGRAMS.parent)
    test.assertEqual(0, done.returncode, done.stderr)
    return target
