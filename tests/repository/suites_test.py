"""A suite of which nothing ran does not pass: it is skipped where all of it is, else it fails."""

import os
import pathlib
import subprocess
import sys
import tempfile
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


class SuitesTest(unittest.TestCase):
    def test_python(self):
        for name, (expected, body) in CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "a_test.py"
                file.write_text("import unittest\n\n\nclass A(unittest.TestCase):\n"
                                f"    {body}\n\n\nif __name__ == '__main__':\n    unittest.main()\n")
                done = subprocess.run([sys.executable, TESTS / "run_suite.py", file],
                                      capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(expected, done.returncode, done.stdout + done.stderr)
                if expected == SKIPPED:
                    self.assertEqual("all tests were skipped:\n  no GPU\n", done.stdout)

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
