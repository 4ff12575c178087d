"""Flags of torchrun beside torchrun itself: what workers are given, what lands in files, what the
console shows."""

import json
import pathlib
import subprocess
import sys
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase

TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"
# Differ from run to run.
OWN = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "TEST_OUT"}

DUMP = """
import json, os, sys
name = os.environ["TEST_OUT"] + os.environ["RANK"]
open(name, "w").write(json.dumps([sys.argv[1:], dict(os.environ)]))
print("out of", os.environ["RANK"], flush=True)
print("error of", os.environ["RANK"], file=sys.stderr, flush=True)
sys.exit(int(os.environ.get("TEST_EXIT", "0")) if os.environ["RANK"] == "1" else 0)
"""


@unittest.skipUnless(TORCHRUN.exists(), "no torchrun beside this Python")
class Flags(LaunchTestCase):
    def setUp(self):
        super().setUp()
        (self.folder / "dump.py").write_text(DUMP)
        (self.folder / "dump_module.py").write_text(DUMP)

    def side(self, name, command, flags, program, env, expect):
        done = subprocess.run(
            [*command, "--nproc-per-node", "2", "--log-dir", name, *flags, *program],
            cwd=self.folder, capture_output=True, text=True, timeout=5 * LIMIT_S,
            env=self.environment({"TEST_OUT": name, "PYTHON_EXEC": sys.executable, **env}))
        self.assertEqual(expect, done.returncode, done.stderr)
        return done

    def both(self, *flags, program=("dump.py", "a", "${local_rank}"), env=None, expect=0):
        """Runs both sides and compares what their workers were given; returns ours and theirs."""
        ours = self.side("ours", [SCALETRAIN, "launch"], flags, program, env or {}, expect)
        theirs = self.side("theirs", [TORCHRUN], flags, program, env or {}, expect)
        for rank in (0, 1):
            words, variables = json.loads((self.folder / f"ours{rank}").read_text())
            their_words, their_variables = json.loads((self.folder / f"theirs{rank}").read_text())
            self.assertEqual(their_words, words)
            self.assertEqual({k: v for k, v in their_variables.items() if k not in OWN},
                             {k: v for k, v in variables.items() if k not in OWN})
            self.assertEqual(their_variables.keys(), variables.keys())
        return ours, theirs

    def logs(self, side):
        """File -> text below the folder of the one run; without the random part of its name."""
        run, = (self.folder / side).iterdir()
        files = {str(path.relative_to(run)): path.read_text() for path in sorted(run.rglob("*"))
                 if path.is_file() and not path.name.startswith("error")}
        return run.name[:-len("_12345678")], files

    def test_redirects_role_and_id(self):
        ours, theirs = self.both("--role", "trainer", "--rdzv-id", "job7", "-r", "3",
                                 "--max-restarts", "2")
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual("job7", self.logs("ours")[0])
        self.assertEqual(4, len(self.logs("ours")[1]))
        self.assertEqual(("", ""), (ours.stdout, ours.stderr))
        self.assertEqual("", theirs.stdout)

    def test_tee_by_local_rank(self):
        ours, theirs = self.both("-t", "0:1,1:3", "--role", "r")
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual(sorted(theirs.stdout.splitlines()), sorted(ours.stdout.splitlines()))
        self.assertEqual("[r0]:out of 0\n[r1]:out of 1\n".splitlines(),
                         sorted(ours.stdout.splitlines()))
        self.assertIn("[r1]:error of 1\n", ours.stderr)
        self.assertIn("error of 0\n", ours.stderr)

    def test_local_ranks_filter(self):
        ours, theirs = self.both("-t", "1", "--local-ranks-filter", "1")
        self.assertEqual(self.logs("theirs"), self.logs("ours"))
        self.assertEqual("[default1]:out of 1\n", ours.stdout)
        self.assertEqual(theirs.stdout, ours.stdout)

    def test_signals_and_virtual_local_rank(self):
        self.both("-r3", "--signals-to-handle", "SIGTERM,SIGUSR1", "--virtual-local-rank",
                  env={"CUDA_VISIBLE_DEVICES": "4,6"})
        variables = json.loads((self.folder / "ours1").read_text())[1]
        self.assertEqual(("0", "6"), (variables["LOCAL_RANK"], variables["CUDA_VISIBLE_DEVICES"]))

    def test_a_module(self):
        self.both("-r", "3", "-m", program=("dump_module", "x"), env={"PYTHONPATH": str(self.folder)})

    def test_no_python_and_an_endpoint(self):
        self.both("-r", "3", "--rdzv-backend", "static", "--rdzv-endpoint", "127.0.0.1:29711",
                  "--no-python", program=(sys.executable, "dump.py", "x"))
        variables = json.loads((self.folder / "ours1").read_text())[1]
        self.assertEqual(("127.0.0.1", "29711"),
                         (variables["MASTER_ADDR"], variables["MASTER_PORT"]))

    def test_a_failure_exits_1_and_is_handed_to_the_launcher_above(self):
        record = ("import sys; from torch.distributed.elastic.multiprocessing.errors import record\n"
                  "@record\ndef main(): raise ValueError('boom')\nmain()")
        for side, command in (("ours", [SCALETRAIN, "launch"]), ("theirs", [TORCHRUN])):
            above = self.folder / f"{side}.json"
            self.side(side, command, ["-r", "3", "--no-python"], [sys.executable, "-c", record],
                      {"TORCHELASTIC_ERROR_FILE": str(above)}, 1)
            message = json.loads(above.read_text())["message"]
            self.assertEqual(("ValueError: boom", 1), (message["message"], message["errorCode"]))


if __name__ == "__main__":
    unittest.main()
