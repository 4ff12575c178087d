"""A page of docs/ whose row and file are compiled with the flags of the build and linked in front of its
libraries, without building anything else."""
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


class Page:
    """The first block of `page` is a row of `rows`, the second the file; `registry` makes things by name,
    `lists` has the rows as values."""

    def __init__(self, page, rows, registry, lists="lib/recipe/lists.cpp"):
        found = [re.sub(r"^   ", "", block, flags=re.MULTILINE)
                 for block in BLOCK.findall((tracked.ROOT / page).read_text())]
        self.row, self.code = found[0], found[1]
        self.rows, self.registry, self.lists = rows, registry, lists
        self.build = PROGRAMS.parent

    def program(self, test, folder):
        """parity_program with the page's thing."""
        return self.programs(test, folder, ["parity_program"])[0]

    def programs(self, test, folder, names):
        """Programs of the build with the page's thing, in `folder`; those without LibTorch know its row."""
        text = (tracked.ROOT / self.rows).read_text()
        copy = folder / self.rows
        copy.parent.mkdir(parents=True)
        copy.write_text(text.replace("#undef", self.row + "\n#undef", 1))
        (folder / "thing.cpp").write_text(self.code)
        sources = [tracked.ROOT / self.lists, tracked.ROOT / self.registry, folder / "thing.cpp"]
        objects = [folder / f"{source.stem}.o" for source in sources]
        for source, target in zip(sources, objects):
            self._compile(test, folder, source, target)
        for name in names:
            self._link(test, objects, folder / name)
        return [folder / name for name in names]

    def _command_for(self, source):
        """How the build compiles `source`."""
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            if entry["file"].endswith(source):
                return entry["directory"], shlex.split(entry["command"])
        raise AssertionError(f"{source} is not compiled by itself")

    def _compile(self, test, folder, source, target):
        directory, command = self._command_for("lib/nn/models.cpp")
        command = command[:command.index("-c")]
        del command[command.index("-o"):command.index("-o") + 2]
        compiler = next(i for i, word in enumerate(command) if word.endswith("c++"))
        command[compiler + 1:compiler + 1] = [f"-I{folder}"]
        done = subprocess.run([*command, "-c", source, "-o", target], cwd=directory, timeout=LIMIT_S,
                              capture_output=True, text=True)
        test.assertEqual(0, done.returncode, done.stderr)
        test.assertEqual("", done.stderr)  # no warning either

    def _link(self, test, objects, target):
        listed = subprocess.run(["ninja", "-C", self.build, "-t", "commands", target.name],
                                check=True, capture_output=True, text=True, timeout=LIMIT_S)
        command = shlex.split(listed.stdout.splitlines()[-1])
        command = command[command.index("&&") + 1:]
        command = command[:command.index("&&")]
        command[command.index("-o") + 1] = str(target)
        if not any("torch" in word for word in command):
            objects = objects[:1]
        command[1:1] = ["-Wl,--allow-multiple-definition", *map(str, objects)]
        done = subprocess.run(command, cwd=self.build, timeout=LIMIT_S, capture_output=True, text=True)
        test.assertEqual(0, done.returncode, done.stderr)
