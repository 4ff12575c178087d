"""Flags of torchrun beside torchrun itself: what workers are given, what lands in files, what the
console shows."""

import json
import sys
import unittest

from launcher.torchrun_support import BothSidesTestCase


class Flags(BothSidesTestCase):
    def test_no_flag_of_logs(self):
        self.both("--max-restarts", "3", usual=("--nproc-per-node", "2"))
        self.assertEqual(self.variables(0)["MASTER_PORT"], self.variables(1)["MASTER_PORT"])

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
        variables = self.variables()
        self.assertEqual(("0", "6"), (variables["LOCAL_RANK"], variables["CUDA_VISIBLE_DEVICES"]))

    def test_a_module(self):
        self.both("-r", "3", "-m", program=("dump_module", "x"), env={"PYTHONPATH": str(self.folder)})

    def test_no_python_and_an_endpoint(self):
        self.both("-r", "3", "--rdzv-backend", "static", "--rdzv-endpoint", "127.0.0.1:29711",
                  "--no-python", program=(sys.executable, "dump.py", "x"))
        variables = self.variables()
        self.assertEqual(("127.0.0.1", "29711"),
                         (variables["MASTER_ADDR"], variables["MASTER_PORT"]))

    def test_a_failure_exits_1_and_is_handed_to_the_launcher_above(self):
        record = ("import sys; from torch.distributed.elastic.multiprocessing.errors import record\n"
                  "@record\ndef main(): raise ValueError('boom')\nmain()")
        for side in self.SIDES:
            above = self.folder / f"{side}.json"
            self.side(side, ["-r", "3", "--no-python"], [sys.executable, "-c", record],
                      {"TORCHELASTIC_ERROR_FILE": str(above)}, 1, usual=("--log-dir", side))
            message = json.loads(above.read_text())["message"]
            self.assertEqual(("ValueError: boom", 1), (message["message"], message["errorCode"]))


if __name__ == "__main__":
    unittest.main()
