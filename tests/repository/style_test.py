"""What scripts can check of the style: format, sizes, tests beside sources, no paths of a machine."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import tracked

MOST_LINES = 400
MOST_FRAGMENTS = 0.08  # of a module's sentences in comments, by scripts/comment_fragments.py
CODE = ["*.cpp", "*.h", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt"]

# Parts that are tested through what they are a part of: source -> that test.
TESTED_THROUGH = {f"lib/recipe/{part}.cpp": "tests/recipe/load_test.cpp" for part in [
    "catalog/component", "describe", "catalog/duration", "catalog/lists", "catalog/paths", "schema/node",
    "schema/problems", "sections/checkpoint", "checks"]}
TESTED_THROUGH |= {
    "lib/core/text/command_line.cpp": "tests/launcher/launch_test.py",
    "lib/core/version.cpp": "tests/launcher/launch_test.py",
    "lib/data/set/classes_file.cpp": "tests/data/set/shards_test.cpp",
    "lib/data/loader/sample_maker.cpp": "tests/data/loader/image_stream_test.cpp",
    "lib/dist/cuda_library.cpp": "tests/dist/device_test.cpp",
    "lib/observe/terminal.cpp": "tests/observe/progress_test.cpp",
    "lib/nn/kernels/activations.cpp": "tests/nn/layers/activations_test.cpp",
    "lib/nn/kernels/activations_bf16.cpp": "tests/nn/layers/activations_test.cpp",
    "lib/nn/kernels/attention.cpp": "tests/nn/layers/fused_attention_test.cpp",
    "lib/nn/kernels/rms_norm.cpp": "tests/nn/layers/rms_norm_test.cpp",
    "lib/optim/foreach_optimizer.cpp": "tests/optim/optimizer_test.cpp",
    "lib/optim/parameter_group.cpp": "tests/optim/optimizer_test.cpp",
    "lib/parallel/compress/quantised.cpp": "tests/parallel/compress/bucket_test.cpp",
    "lib/parallel/compress/wire.cpp": "tests/parallel/compress/bucket_test.cpp",
    "lib/storage/remote_object.cpp": "tests/storage/http_test.cpp",
}

# Written in two parts, so that this file does not find itself.
MACHINE_PATHS = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + r"me/\w+", "/tm" + "p/bash_"]))

# A log, a rank or a command "reports", "warns", "says"; in names too.
TELLS = re.compile(r"(?<![A-Za-z])k?(?:[Tt]ells?|[Tt]elling|[Tt]old)(?![a-z])")


def run_tool(test, name, arguments):
    program = shutil.which(name)
    if program is None:
        test.skipTest(f"{name} is not installed")
    done = subprocess.run([program, *arguments], cwd=tracked.ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


def mirrored_tests(source):
    """tests/data/tar_header_test.cpp for lib/data/tar_header.cpp, or of what it is a part of by its
    name: tests/data/tar_test.cpp."""
    words = source.stem.split("_")
    stems = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    folder = source.parent.relative_to("lib")
    return [f"tests/{folder}/{stem}_test.cpp" for stem in stems]


@unittest.skipUnless(os.environ.get("SCALETRAIN_LINT") == "1", "scripts/lint.sh runs it")
class Tools(unittest.TestCase):
    def test_cpp_is_formatted(self):
        paths = tracked.files("lib/*.h", "lib/*.cpp", "launcher/*.h", "launcher/*.cpp",
                              "app/*.h", "app/*.cpp", "tests/*.h", "tests/*.cpp")
        self.assertGreater(len(paths), 50)
        code, output = run_tool(self, "clang-format-14", ["--dry-run", "-Werror", *map(str, paths)])
        wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", output, re.MULTILINE)))
        self.assertEqual("", "\n".join(wrong), "run: clang-format-14 -i FILE")
        self.assertEqual(0, code, output)

    def test_shell_scripts_pass_shellcheck(self):
        scripts = [path for path in tracked.files() if path.suffix == ".sh" or (
            path.suffix == "" and tracked.starts_with(path, b"#!/bin/bash", b"#!/bin/sh",
                                                      b"#!/usr/bin/env bash"))]
        self.assertTrue(scripts)
        code, output = run_tool(self, "shellcheck", ["--external-sources", *map(str, scripts)])
        self.assertEqual(0, code, output)


class Style(unittest.TestCase):
    maxDiff = None

    def test_no_file_is_too_long(self):
        lines = {str(path): tracked.text(path).count("\n") for path in tracked.files(*CODE)}
        self.assertEqual({}, {path: count for path, count in lines.items() if count > MOST_LINES})

    def test_no_path_of_a_machine(self):
        found = []
        for path in tracked.files():
            text = (tracked.ROOT / path).read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.split("\n"), 1):
                if MACHINE_PATHS.search(line):
                    found.append(f"{path}:{number}: {line.strip()[:120]}")
        self.assertEqual("", "\n".join(found))

    def test_texts_say_who_does_what(self):
        found = [f"{path}:{number}: {line.strip()[:120]}"
                 for path in tracked.files("lib/*", "app/*", "launcher/*", "scripts/*", "docs/*",
                                           "README.md", "CHANGELOG.md") if path.suffix != ".png"
                 for number, line in enumerate(tracked.text(path).split("\n"), 1)
                 if TELLS.search(line)]
        self.assertEqual("", "\n".join(found), "write: warns, reports, says, sends, lists")

    def test_comments_are_sentences(self):
        table = subprocess.run([tracked.ROOT / "scripts/comment_fragments.py"], check=True, capture_output=True,
                               text=True).stdout
        counts = {module: int(fragments) / int(every)
                  for module, fragments, every, *_ in map(str.split, table.splitlines())}
        self.assertGreater(len(counts), 20)
        fragmented = {module for module, share in counts.items() if share > MOST_FRAGMENTS}
        self.assertEqual(set(), fragmented, table)

    def test_every_source_with_a_header_has_a_test(self):
        tests = tracked.files("tests/*_test.cpp", "tests/*.py")
        names = {str(path) for path in tests}
        included = set(re.findall(r'#include "([^"]+)"', "".join(map(tracked.text, tests))))
        missing = []
        for path in tracked.files("lib/*.cpp"):
            header = path.with_suffix(".h")
            if not (tracked.ROOT / header).exists() or str(header) in included:
                continue
            if path.parts[1] == "torch_pch":  # nothing but includes
                continue
            if not names.intersection([*mirrored_tests(path), TESTED_THROUGH.get(str(path))]):
                missing.append(f"{path}: {mirrored_tests(path)[0]} is missing")
        self.assertEqual("", "\n".join(missing))

    def test_the_list_of_exceptions_is_needed(self):
        for path in TESTED_THROUGH:
            self.assertTrue((tracked.ROOT / path).exists(), path)
            self.assertFalse((tracked.ROOT / mirrored_tests(pathlib.Path(path))[0]).exists(), path)

    def test_a_type_has_one_header(self):
        # Two types of one name in one namespace break a program without an error of the linker.
        homes = {}
        for path in tracked.files("lib/*.h", "launcher/*.h", "app/*.h"):
            text = tracked.text(path)
            # The last is the file's own: forward declarations of other namespaces stand before it.
            namespaces = re.findall(r"^namespace ([\w:]+)", text, re.M)
            for name in re.findall(r"^(?:struct|class|enum class) (\w+)[^;{]*\{", text, re.M):
                homes.setdefault((namespaces and namespaces[-1], name), set()).add(str(path))
        self.assertEqual([], [(key, sorted(paths)) for key, paths in homes.items()
                              if len(paths) > 1])



if __name__ == "__main__":
    unittest.main()
