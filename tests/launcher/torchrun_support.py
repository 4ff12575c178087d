"""scaletrain launch and torchrun with the same flags, side by side."""

import json
import pathlib
import socket
import subprocess
import sys
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase

TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"
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
    do: nobody else is given it in the seconds that torchrun takes until it listens. Without it a
    first node ends, and the second waits for it."""
    held = socket.socket()
    test.addCleanup(held.close)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held.getsockname()[1]


@unittest.skipUnless(TORCHRUN.exists(), "no torchrun beside this Python")
class BothSidesTestCase(LaunchTestCase):
    SIDES = (("ours", [SCALETRAIN, "launch"]), ("theirs", [TORCHRUN]))
    USUAL = ("--nproc-per-node", "2", "--log-dir", "SIDE")  # SIDE: ours or theirs

    def setUp(self):
        super().setUp()
        (self.folder / "dump.py").write_text(DUMP)
        (self.folder / "dump_module.py").write_text(DUMP)

    def apart(self, command, env):
        """The command; torchrun with a port of its own in the place of 29500, for tests side by side."""
        if command != [TORCHRUN] or "PET_MASTER_PORT" in env:
            return command
        return [*command, "--master-port", str(hold_port(self))]

    def side(self, name, command, flags, program, env, expect, usual=USUAL):
        flags = [word.replace("SIDE", name) for word in (*usual, *flags)]
        env = {key: value.replace("SIDE", name) for key, value in env.items()}
        done = subprocess.run(
            [*self.apart(command, env), *flags, *program], cwd=self.folder, capture_output=True,
            text=True, timeout=5 * LIMIT_S,
            env=self.environment({"TEST_OUT": name, "PYTHON_EXEC": sys.executable, **env}))
        self.assertEqual(expect, done.returncode, done.stderr)
        return done

    def each(self, *flags, program=("dump.py", "a", "${local_rank}"), env=None, expect=0,
             usual=USUAL):
        """Runs both sides; returns ours and theirs."""
        return [self.side(name, command, flags, program, env or {}, expect, usual)
                for name, command in self.SIDES]

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
