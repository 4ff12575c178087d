"""scaletrain launch and torchrun with the same flags, side by side."""

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import traceback
import types
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase

try:
    from torch.distributed import run as torchrun
except ImportError:
    torchrun = None

# Differ from run to run.
OWN = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "TEST_OUT", "PET_LOG_DIR"}

DUMP = """
import json, os, sys
name = os.environ["TEST_OUT"] + os.environ["RANK"]
open(name, "w").write(json.dumps([sys.argv[1:], dict(os.environ)]))
print("out of", os.environ["RANK"], flush=True)
print("error of", os.environ["RANK"], file=sys.stderr, flush=True)
sys.exit(int(os.environ.get("TEST_EXIT", "0")) if os.environ["RANK"] == "1" else 0)
"""


def hold_port(test):
    """A free port of this machine, kept until the test ends for who sets SO_REUSEADDR, as launchers
    do: nobody else is given it in the time that torchrun takes until it listens. Without it a
    first node ends, and the second waits for it."""
    held = socket.socket()
    test.addCleanup(held.close)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held.getsockname()[1]


def become_torchrun(words, environment):
    """In a forked child: runs torchrun, which this process has imported, and exits."""
    os.closerange(3, 4096)  # Popen waits for the end of one of them
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # the environment names another
    sys.modules["__main__"] = types.ModuleType("__main__")
    atexit._clear()
    status = 0
    try:
        torchrun.main(words)
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


@unittest.skipUnless(torchrun, "this Python has no torch.distributed.run")
class BothSidesTestCase(LaunchTestCase):
    SIDES = ("ours", "theirs")
    USUAL = ("--nproc-per-node", "2", "--log-dir", "SIDE")  # SIDE: ours or theirs

    def setUp(self):
        super().setUp()
        (self.folder / "dump.py").write_text(DUMP)
        (self.folder / "dump_module.py").write_text(DUMP)

    def begin(self, side, *words, env=None, out=None):
        """Starts scaletrain launch or torchrun, which has a port of its own in the place of 29500, for
        tests side by side."""
        environment = self.environment(
            {"TEST_OUT": out or side, "PYTHON_EXEC": sys.executable, **(env or {})})
        options = {"cwd": self.folder, "env": environment, "text": True, "stdin": subprocess.DEVNULL,
                   "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = list(map(str, words))
        if side == "ours":
            process = subprocess.Popen([SCALETRAIN, "launch", *words], **options)
        else:
            if "PET_MASTER_PORT" not in environment:
                words = ["--master-port", str(hold_port(self)), *words]
            sys.stdout.flush()
            process = subprocess.Popen(
                ["torchrun"], **options, restore_signals=False,
                preexec_fn=functools.partial(become_torchrun, words, environment))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.addCleanup(self.kill_left)
        return process

    def finish(self, process, expect=0):
        out, err = process.communicate(timeout=5 * LIMIT_S)
        self.assertEqual(expect, process.returncode, err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def side(self, side, flags, program, env, expect, usual=USUAL):
        flags = [word.replace("SIDE", side) for word in (*usual, *flags)]
        env = {key: value.replace("SIDE", side) for key, value in env.items()}
        return self.finish(self.begin(side, *flags, *program, env=env), expect)

    def each(self, *flags, program=("dump.py", "a", "${local_rank}"), env=None, expect=0,
             usual=USUAL):
        """Runs both sides; returns ours and theirs."""
        return [self.side(side, flags, program, env or {}, expect, usual) for side in self.SIDES]

    def both(self, *flags, **options):
        """As each; compares what the workers were given too."""
        ours, theirs = self.each(*flags, **options)
        for rank in (0, 1):
            words, variables = json.loads((self.folder / f"ours{rank}").read_text())
            their_words, their_variables = json.loads((self.folder / f"theirs{rank}").read_text())
            self.assertEqual(their_words, words)
            self.assertEqual({k: v for k, v in their_variables.items() if k not in OWN},
                             {k: v for k, v in variables.items() if k not in OWN})
            self.assertEqual(their_variables.keys(), variables.keys())
        return ours, theirs

    def variables(self, rank=1):
        """What our worker was given."""
        return json.loads((self.folder / f"ours{rank}").read_text())[1]

    def logs(self, side):
        """File -> text below the folder of the one run; without the random part of its name."""
        run, = (self.folder / side).iterdir()
        files = {str(path.relative_to(run)): path.read_text() for path in sorted(run.rglob("*"))
                 if path.is_file() and path.name not in ("error.json", "failure.json")}
        return run.name[:-len("_12345678")], files
