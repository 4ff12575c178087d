"""What the launcher's tests share: starting scaletrain, waiting with limits, finding what is left."""

import os
import pathlib
import subprocess
import tempfile
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ROOT / "build/release/bin")).resolve()
SCALETRAIN = str(BIN / "scaletrain")
LIMIT_S = 60


class LaunchTestCase(unittest.TestCase):
    """A temporary folder, and a marker in the environment of everything that the test starts."""

    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.marker = f"SCALETRAIN_TEST_MARKER={uuid.uuid4()}"
        self.addCleanup(self.kill_left)

    def environment(self, changes=None):
        name, value = self.marker.split("=")
        kept = {key: text for key, text in os.environ.items()
                if not key.startswith(("PET_", "TORCHELASTIC_", "OMP_"))}
        return {**kept, name: value, "TMPDIR": str(self.folder), **(changes or {})}

    def start(self, *arguments, env=None, **options):
        process = subprocess.Popen(
            [SCALETRAIN, *map(str, arguments)], cwd=self.folder, text=True,
            env=self.environment(env),
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               **options})
        self.addCleanup(process.communicate, timeout=LIMIT_S)
        self.addCleanup(process.kill)
        return process

    def run_launcher(self, *arguments, expect=0, env=None):
        """Runs to the end; nothing may be left running. The result has stdout and stderr; with None
        for `expect` any exit status will do."""
        process = self.start(*arguments, env=env)
        out, err = process.communicate(timeout=LIMIT_S)
        if expect is not None:
            self.assertEqual(expect, process.returncode, f"--- out\n{out}\n--- err\n{err}")
        self.assert_nothing_left()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def wait_for(self, condition, what):
        """The first true result of `condition`."""
        deadline = time.monotonic() + LIMIT_S
        while not (result := condition()):
            self.assertLess(time.monotonic(), deadline, f"waited too long for {what}")
            time.sleep(0.01)
        return result

    def wait_for_files(self, *names):
        self.wait_for(lambda: all((self.folder / name).exists() for name in names), names)

    def left(self):
        """The processes with this test's marker, zombies left out."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.marker.encode() in (
                        entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # it has gone meanwhile
        return found

    def assert_nothing_left(self):
        self.wait_for(lambda: not self.left(), "everything to end")

    def kill_left(self):
        for pid in self.left():
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
