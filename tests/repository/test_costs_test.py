"""scripts/test_costs.py: a step is charged its share of the cores, a test its CPU seconds."""

import pathlib
import sys
import tempfile
import unittest

import tracked

sys.path.insert(0, str(tracked.ROOT / "scripts"))
import test_costs  # noqa: E402

LOG = """# ninja log v5
2000\t4000\t4000000000\tlauncher/CMakeFiles/scaletrain_launcher.dir/c.o\t3
0\t1000\t9000000000\ttests/CMakeFiles/test_nn.dir/b.o\t2
0\t4000\t4000000000\tlib/nn/CMakeFiles/scaletrain_nn.dir/a.o\t1
0\t4000\t4000000000\t/build/lib/nn/CMakeFiles/scaletrain_nn.dir/a.o\t1
0\t4000\t4000000000\told.o\t2
"""
JUNIT = """<testsuite>
<testcase name="nn/a" time="2.5" status="run"><system-out>text
cpu_s: 1.250
</system-out></testcase>
<testcase name="dist/nccl" time="0.1" status="notrun"><system-out></system-out></testcase>
</testsuite>"""


class TestCosts(unittest.TestCase):
    def test_steps_share_the_cores_and_the_newest_run_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / ".ninja_log"
            log.write_text(LOG)
            names = {line.split("\t")[3] for line in LOG.splitlines()[1:]} - {"old.o"}
            log.with_name("build.ninja").write_text("".join(f"build {n}: CXX\n" for n in names))
            found = {test_costs.place(name): s for name, s in test_costs.steps(log, cores=2).items()}
        # 2 s with two steps on two cores, then 2 s with three of them: 2 + 2 * 2/3
        self.assertAlmostEqual(2 + 4 / 3, found["lib/nn"])
        self.assertAlmostEqual(4 / 3, found["launcher"])
        self.assertAlmostEqual(1, found["tests/nn"])  # compiled again, alone

    def test_a_test_has_its_cpu_seconds_and_a_skipped_one_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            junit = pathlib.Path(folder) / "tests.xml"
            junit.write_text(JUNIT)
            self.assertEqual({"nn/a": (1.25, 2.5)}, test_costs.test_seconds(junit))


if __name__ == "__main__":
    unittest.main()
