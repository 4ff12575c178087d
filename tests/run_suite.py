"""Runs one file of tests for ctest: `run_suite.py FILE`.

Exits with 0 if at least one test ran and none failed, with 77 (which ctest shows as skipped) if all
tests were skipped, and with 1 if there was none. The last line on stderr is the CPU time of the
suite and of the processes it waited for, which scripts/test_costs.py reads. If the environment variable
SCALETRAIN_FORK_SERVER names the folder of a fork server, suites that import PyTorch run there.
"""

import os
import pathlib
import resource
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


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Suite(unittest.TestProgram):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **{"testRunner": Runner, **named, "exit": False})
        print(f"cpu_s: {cpu_seconds():.3f}", file=sys.stderr)
        sys.exit(status_of(self.result))


def run(arguments):
    """Runs the file of tests `arguments[0]`; its unittest.main() exits."""
    sys.argv = arguments
    sys.path[0] = str(pathlib.Path(arguments[0]).parent)
    unittest.main = Suite
    runpy.run_path(arguments[0], run_name="__main__")
    sys.exit(f"{arguments[0]}: ran no test\n  end the file with unittest.main()")


if __name__ == "__main__":
    if folder := os.environ.get("SCALETRAIN_FORK_SERVER"):
        import fork_server

        fork_server.run_in_server(folder, sys.argv[1:])
    run(sys.argv[1:])
