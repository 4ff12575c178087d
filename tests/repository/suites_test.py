"""A suite of which nothing ran does not pass: it is skipped where all of it is, else it fails."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SKIPPED = 77
CASES = {
    "one runs": (0, "def test_a(self): pass\n    @unittest.skip('no GPU')\n    def test_b(self): pass"),
    "one fails": (1, "def test_a(self): self.fail()"),
    "there is none": (1, "pass"),
    "all are skipped": (SKIPPED, "def test_a(self): self.skipTest('no GPU')"),
    "the class is skipped": (SKIPPED, "def setUp(self): raise unittest.SkipTest('no GPU')\n"
                                      "    def test_a(self): pass"),
    "the set-up is skipped": (SKIPPED, "def test_a(self): pass\n    @classmethod\n"
                                       "    def setUpClass(cls): raise unittest.SkipTest('no GPU')"),
    "one subtest runs": (0, "def test_a(self):\n"
                            "        with self.subTest('a'): self.skipTest('no GPU')\n"
                            "        with self.subTest('b'): pass"),
    "all subtests are skipped": (SKIPPED, "def test_a(self):\n"
                                          "        with self.subTest('a'): self.skipTest('no GPU')"),
}


# Stands for PyTorch: shows which process imported it.
TORCH = "import os\n\nloaded_by = os.getpid()\n"
SUITE = """import os, signal, subprocess, time, unittest
import torch


class A(unittest.TestCase):
    {body}


if __name__ == '__main__':
    unittest.main()
"""


class Suites(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "torch.py").write_text(TORCH)
        self.environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        self.environment.pop("SCALETRAIN_FORK_SERVER", None)

    def start(self, body, **changes):
        file = self.folder / "a_test.py"
        file.write_text(SUITE.format(body=body))
        return subprocess.Popen([sys.executable, TESTS / "run_suite.py", file], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**self.environment, **changes})

    def run_suite(self, body, expect, **changes):
        process = self.start(body, **changes)
        out, err = process.communicate(timeout=60)
        self.assertEqual(expect, process.returncode, out + err)
        self.assertEqual(1, err.count("\ncpu_s: "))
        return out, err

    def test_a_file_that_runs_no_test_fails(self):
        file = self.folder / "b_test.py"
        file.write_text("import unittest\n\n\nclass B(unittest.TestCase):\n    def test_b(self): pass\n")
        process = subprocess.run([sys.executable, TESTS / "run_suite.py", file], text=True, timeout=60,
                                 capture_output=True, env=self.environment)
        self.assertEqual((1, True), (process.returncode, "ran no test" in process.stderr), process.stderr)

    def test_what_ran_decides(self):
        for name, (expected, body) in CASES.items():
            with self.subTest(name):
                out, _ = self.run_suite(body, expected)
                if expected == SKIPPED:
                    self.assertEqual("all tests were skipped:\n  no GPU\n", out)

    def test_who_imported(self):
        self.run_suite("def test_a(self): self.assertEqual(os.getpid(), torch.loaded_by)", 0)


class SuitesOfTheForkServer(Suites):
    """The same cases; the server ends with this process."""

    def setUp(self):
        super().setUp()
        self.server = self.folder / "server"
        self.environment["SCALETRAIN_FORK_SERVER"] = str(self.server)
        self.command("start")
        self.addCleanup(lambda: self.server.exists() and self.command("stop"))

    def command(self, word, **options):
        return subprocess.run([sys.executable, TESTS / "fork_server.py", word, self.server],
                              env=self.environment, check=True, capture_output=True, text=True,
                              timeout=60, **options)

    def wait_for(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def test_who_imported(self):
        body = "def test_a(self): self.assertNotEqual(os.getpid(), torch.loaded_by)"
        self.run_suite(body, 0)
        self.run_suite(body, 0)
        self.assertIn("2 suites ran in the fork server\n", self.command("stop").stdout)
        self.run_suite(body, 1)  # without a server in a process of its own

    def test_another_environment_needs_another_process(self):
        _, err = self.run_suite("def test_a(self): self.assertEqual(os.getpid(), torch.loaded_by)", 0,
                                OMP_NUM_THREADS="3")
        self.assertIn("another environment", err)

    def test_a_thread_of_an_import_needs_another_process(self):
        (self.folder / "torch.py").write_text(TORCH + "import threading, time\nthreading.Thread("
                                              "target=time.sleep, args=(1,), daemon=True).start()\n")
        _, err = self.run_suite("def test_a(self): self.assertEqual(os.getpid(), torch.loaded_by)", 0)
        self.assertIn("has started a thread", err)

    def test_a_signal_that_kills_a_suite_is_named(self):
        process = self.start("def test_a(self): os.kill(os.getpid(), signal.SIGSEGV)")
        _, err = process.communicate(timeout=60)
        self.assertEqual((1, "fork server: the suite was killed by SIGSEGV\n"),
                         (process.returncode, err))

    def test_a_killed_suite_takes_its_children_along(self):
        process = self.start(
            "def test_a(self):\n"
            "        child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "        print(os.getpid(), child.pid, flush=True)\n"
            "        child.wait()")
        started = [pathlib.Path("/proc", pid) for pid in process.stdout.readline().split()]
        self.assertEqual([True, True], [path.exists() for path in started])
        process.kill()
        process.communicate(timeout=60)
        self.wait_for(lambda: not any(path.exists() for path in started))

    def test_the_server_ends_with_its_caller(self):
        self.command("stop")
        subprocess.run(["sh", "-c", "\"$@\"; [ -S \"$4/socket\" ]", "sh", sys.executable,
                        TESTS / "fork_server.py", "start", self.server], check=True,
                       env=self.environment, timeout=60)
        self.wait_for(lambda: not self.server.exists())


class Doctest(unittest.TestCase):
    def test_doctest(self):
        for filters, expected in ((["a test*"], 0), (["a test that runs"], 0),
                                  (["*not there"], SKIPPED), (["another"], 1)):
            done = subprocess.run(
                [pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "suite_program",
                 *(f"--test-case={one}" for one in filters)],
                capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(expected, done.returncode, done.stdout)
            self.assertEqual(expected == SKIPPED, "needs what is not there" in done.stdout)


if __name__ == "__main__":
    unittest.main()
