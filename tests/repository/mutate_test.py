"""scripts/mutate.sh on a small file of its own, and that docs/lab/mutants.md lists lines that are there."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import tracked

SOURCE = """\
#include <string>
#include <vector>

struct Known {
  explicit Known(int value) : value(value) {}
  int value;
};

int clamp(int value) {
  if (value > 10) return 10;
  return value;
}

void note(int& count, int value) {
  count += value;
  for (int i = 0; i < value; ++i) count += 0;
}

bool is_even(int value) {
  std::vector<bool> parities;
  parities.reserve(static_cast<std::size_t>(1));
  const bool even = value % 2 == 0;
  parities.push_back(even);
  return parities.back();
}

Known known(int value) {
  if (value < 0) {
    throw std::string("negative");
  }
  return Known(value);
}

[[noreturn]] void refuse() {
  throw 1;
}

constexpr int twice(int value) { return 2 * value; }
static_assert(twice(2) == 4);
int four() { return twice(2); }

int in_steps(int value) {
  const auto step = [](int from) {
    const auto is_small = [](int one) { return one < 2; };
    return is_small(from) ? 5 : 2 * from;
  };
  return step(value);
}

struct Number {
  int value = 0;
  bool operator==(const Number&) const = default;
};

bool are_equal(int one, int other) { return Number{one} == Number{other}; }
"""

# What is declared here is what the file has.
TESTS = """\
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
struct Known { explicit Known(int value); int value; };
int clamp(int);
void note(int&, int);
bool is_even(int);
Known known(int);
int four();
int in_steps(int);
bool are_equal(int, int);

TEST_CASE("a, b") { CHECK(clamp(20) == 10); CHECK(clamp(3) == 3); }
TEST_CASE("is_even") { CHECK(is_even(2)); CHECK(known(2).value == 2); CHECK(four() == 4); }
TEST_CASE("in_steps") { CHECK(in_steps(1) == 5); CHECK(in_steps(3) == 6); CHECK(are_equal(1, 1)); }
TEST_CASE("note") { int count = 0; note(count, 2); CHECK(count == 2); }
"""

NINJA = """\
rule compile
  command = c++ -std=c++20 -I.. -o $out -c $in
rule link
  command = : && c++ $in -o $out && :
build tiny.o: compile unity_0.cpp
build test.o: compile ../lib/tiny/test.cpp
build bin/test_tiny: link tiny.o test.o
"""

EXPECTED = """\
lib/tiny/tiny.cpp: 15 killed, 2 survived, 2 unreached, 5 not mutated
lib/tiny/tiny.cpp:16: mutant 5 survived: loop not run: for (int i = 0; i < value; ++i) count += 0;
lib/tiny/tiny.cpp:16: mutant 6 survived: left out: for (int i = 0; i < value; ++i) count += 0;
lib/tiny/tiny.cpp:29: mutant 11 unreached: left out: throw std::string("negative");
lib/tiny/tiny.cpp:35: mutant 13 unreached: something else is thrown: throw 1;
"""


class Mutate(unittest.TestCase):
    maxDiff = None

    def mutate(self, name="lib/tiny/tiny.cpp"):
        done = subprocess.run([sys.executable, tracked.ROOT / "scripts/mutate/mutate.py", name,
                               "--build", "build"],
                              cwd=self.root, capture_output=True, text=True, check=False,
                              timeout=300)
        return done.returncode, done.stdout, done.stderr

    def setUp(self):
        if shutil.which("clang-14") is None:
            self.skipTest("clang-14 is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        code, build = self.root / "lib/tiny", self.root / "build"
        code.mkdir(parents=True)
        build.mkdir()
        (code / "tiny.cpp").write_text(SOURCE)
        (code / "test.cpp").write_text(TESTS)
        unity = build / "unity_0.cpp"
        unity.write_text('#include "lib/tiny/tiny.cpp"\n')
        (build / "build.ninja").write_text(NINJA)
        (build / "compile_commands.json").write_text(json.dumps([{
            "directory": str(build), "file": str(unity),
            "command": f"c++ -std=c++20 -I{self.root} -o tiny.o -c {unity}"}]))

    def test_killed_survived_and_unreached(self):
        self.assertEqual((1, EXPECTED), (result := self.mutate())[:2], result)
        self.assertEqual(SOURCE, (self.root / "lib/tiny/tiny.cpp").read_text())

        docs = self.root / "docs/lab"
        docs.mkdir(parents=True)
        rows = [line.split(": ", 3) for line in EXPECTED.splitlines()[1:]]
        (docs / "mutants.md").write_text("".join(
            f"| `lib/tiny/tiny.cpp` | `` {text} `` | {what} | why |\n" for _, _, what, text in rows))
        listed = re.sub(r"(survived|unreached):", r"\1 (listed):", EXPECTED)
        self.assertEqual((0, listed), (result := self.mutate())[:2], result)

    def test_what_cannot_be_run_is_named(self):
        for name, error in {
                "lib/tiny/tiny.h": "mutate: lib/tiny/tiny.h is no .cpp file\n",
                "lib/tiny/other.cpp": "other.cpp is not compiled in "}.items():
            (self.root / name).touch()
            status, _, said = self.mutate(name)
            self.assertEqual(1, status)
            self.assertIn(error, said)


class Listing(unittest.TestCase):
    def test_every_survivor_of_the_list_is_in_its_file(self):
        text = tracked.text("docs/lab/mutants.md")
        rows = re.findall(r"^\| `([\w/.]+)` \| `` (.+?) `` \| ([^|]+) \| ([^|]+) \|$", text, re.M)
        self.assertEqual(len(re.findall(r"^\| `lib/", text, re.M)), len(rows))
        gone = [(file, line) for file, line, _, _ in rows
                if line not in map(str.strip, tracked.text(file).split("\n"))]
        self.assertEqual([], gone)


if __name__ == "__main__":
    unittest.main()
