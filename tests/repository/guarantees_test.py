"""docs/internals/guarantees.md assigns every Python test to exactly one guarantee, and names files that exist."""
import collections
import pathlib
import re
import unittest

import tracked

PAGE = pathlib.Path("docs/internals/guarantees.md")
FOLDERS = ["repository", "launcher", "data", "parity", "end_to_end"]
ROW = re.compile(r"^\|([^|\n]*)\|([^|\n]*)\|$", re.MULTILINE)
FILE = re.compile(r"`([\w/]+\.(?:py|cpp))`")
GUARANTEES, REMOVED = "guarantee", "removed test"


def tables(text):
    """The rows of all tables by the first cell of their header, as pairs of cells."""
    found = collections.defaultdict(list)
    header = None
    for first, second in ((a.strip(), b.strip()) for a, b in ROW.findall(text)):
        if first in (GUARANTEES, REMOVED):
            header = first
        elif set(first) != {"-"}:
            found[header].append((first, second))
    return found


def mistakes(text, python_tests, exists):
    """What is wrong with the page: `python_tests` must be listed; `exists` says if a path does."""
    found = tables(text)
    listed = collections.Counter(
        name for _, tests in found[GUARANTEES] for name in FILE.findall(tests))
    stated = collections.Counter(guarantee for guarantee, _ in found[GUARANTEES])
    return [
        *(f"{name}: is not listed" for name in sorted(set(python_tests) - set(listed))),
        *(f"{name}: is listed {count} times" for name, count in listed.items() if count > 1),
        *(f"{name}: does not exist" for name in listed if not exists(name)),
        *(f"{guarantee}: has no test" for guarantee, tests in found[GUARANTEES]
          if not FILE.findall(tests)),
        *(f"{guarantee}: is stated {count} times" for guarantee, count in stated.items()
          if count > 1),
        *(f"{name}: is removed and exists" for removed, _ in found[REMOVED]
          for name in FILE.findall(removed) if exists(name)),
        *(f"{removed}: is not covered by a listed test" for removed, tests in found[REMOVED]
          if not FILE.findall(tests) or not set(FILE.findall(tests)) <= set(listed))]


class Guarantees(unittest.TestCase):
    maxDiff = None

    def test_every_test_protects_one_guarantee(self):
        paths = tracked.files(*(f"tests/{folder}/*_test.py" for folder in FOLDERS))
        names = [str(path.relative_to("tests")) for path in paths]
        self.assertGreater(len(names), 100)
        found = mistakes(tracked.text(PAGE), names,
                         lambda name: (tracked.ROOT / "tests" / name).is_file())
        self.assertEqual("", "\n".join(found), f"{PAGE} lists each test once")


class TheCheckItself(unittest.TestCase):
    TEXT = ("| guarantee | tests |\n|---|---|\n| One. | `data/a_test.py`, `train/b_test.cpp` |\n"
            "| Two. | `data/c_test.py` |\n\n| removed test | covered by |\n|---|---|\n"
            "| `data/old_test.py` | `data/a_test.py` |\n")
    THERE = ["data/a_test.py", "train/b_test.cpp", "data/c_test.py"]

    def mistakes(self, old="", new="", tests=("data/a_test.py", "data/c_test.py")):
        self.assertIn(old, self.TEXT)
        return mistakes(self.TEXT.replace(old, new, 1), tests, self.THERE.__contains__)

    def test_a_right_page_has_no_mistakes(self):
        self.assertEqual([], self.mistakes())

    def test_each_mistake_is_found(self):
        for old, new, expected in [
                ("`data/c_test.py`", "", ["data/c_test.py: is not listed", "Two.: has no test"]),
                ("`data/c_test.py`", "`data/c_test.py`, `train/b_test.cpp`",
                 ["train/b_test.cpp: is listed 2 times"]),
                ("train/b_test.cpp", "train/gone_test.cpp", ["train/gone_test.cpp: does not exist"]),
                ("Two.", "One.", ["One.: is stated 2 times"]),
                ("old_test", "c_test", ["data/c_test.py: is removed and exists"]),
                ("| `data/a_test.py` |\n", "| |\n",
                 ["`data/old_test.py`: is not covered by a listed test"])]:
            with self.subTest(expected):
                self.assertEqual(expected, self.mistakes(old, new))

    def test_a_new_test_must_be_listed(self):
        self.assertEqual(["parity/new_test.py: is not listed"],
                         self.mistakes(tests=["parity/new_test.py"]))


if __name__ == "__main__":
    unittest.main()
