"""Runs one file of tests for ctest: `run_suite.py FILE`.

Exits with 0 only where a test ran and none failed; with 77, which ctest shows as skipped, where all
were skipped, and with 1 where there was none.
"""

import pathlib
import runpy
import sys
import unittest

SKIPPED = 77


class Result(unittest.TextTestResult):
    ran = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.ran += 1

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        self.ran += error is None


class Runner(unittest.TextTestRunner):
    resultclass = Result


def status_of(result):
    if not result.wasSuccessful():
        return 1
    if result.ran:
        return 0
    if not result.skipped:
        return 1
    print("all tests were skipped:", *sorted({reason for _, reason in result.skipped}), sep="\n  ")
    return SKIPPED


class Suite(unittest.TestProgram):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **{"testRunner": Runner, **named, "exit": False})
        sys.exit(status_of(self.result))


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path[0] = str(pathlib.Path(sys.argv[0]).parent)
    unittest.main = Suite
    runpy.run_path(sys.argv[0], run_name="__main__")
