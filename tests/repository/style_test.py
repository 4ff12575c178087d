"""What scripts can check of the style: format, sizes, tests beside sources, no paths of a machine."""
import re
import shutil
import subprocess
import unittest

import tracked

MOST_LINES = 400
CODE = ["*.cpp", "*.h", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt"]

# Sources whose test has another place, and where it is.
TESTED_ELSEWHERE = {}

# Written in two parts, so that this file does not find itself.
MACHINE_PATHS = re.compile("|".join(["/wo" + "rk/", "/ro" + "ot/", "/ho" + r"me/\w+", "/tm" + "p/bash_"]))


def run_tool(test, name, arguments):
    program = shutil.which(name)
    if program is None:
        test.skipTest(f"{name} is not installed")
    done = subprocess.run([program, *arguments], cwd=tracked.ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)
    return done.returncode, done.stdout


class Style(unittest.TestCase):
    maxDiff = None

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

    def test_every_source_with_a_header_has_a_test(self):
        missing = []
        for path in tracked.files("lib/*.cpp", "launcher/*.cpp"):
            if not (tracked.ROOT / path.with_suffix(".h")).exists():
                continue
            test = TESTED_ELSEWHERE.get(str(path))
            if test is None:
                inside = path.relative_to("lib") if path.parts[0] == "lib" else path
                test = f"tests/{inside.with_name(inside.stem + '_test.cpp')}"
            if not (tracked.ROOT / test).exists():
                missing.append(f"{path}: {test} is missing")
        self.assertEqual("", "\n".join(missing))

    def test_the_list_of_exceptions_is_needed(self):
        for path in TESTED_ELSEWHERE:
            self.assertTrue((tracked.ROOT / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
