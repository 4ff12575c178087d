"""What the end-to-end tests share: the programs, the digits, runs and what they leave behind."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ROOT / "build/release/bin")).resolve()
SCALETRAIN = BIN / "scaletrain"
DIGITS = ROOT / "digits"
LONG = os.environ.get("SCALETRAIN_LONG") == "1"
TIMEOUT_S = 600
FEW_TOKENS = 0.003  # of all


def make_digits():
    subprocess.run(
        [sys.executable, ROOT / "scripts/make_digits.py", DIGITS], check=True, capture_output=True)


class RunTestCase(unittest.TestCase):
    """A temporary folder, the digits, and helpers to launch runs in it."""

    @classmethod
    def setUpClass(cls):
        make_digits()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def recipe(self, name="recipe", **changes):
        """A recipe file: the digits with an mlp, `changes` merged over it at the top level."""
        recipe = {
            "name": name,
            "seed": 7,
            "model": {"name": "mlp", "num_classes": 10, "hidden": 32, "layers": 1},
            "data": {
                "train": {"shards": str(DIGITS / "train-{000000..000003}.tar")},
                "val": {"shards": str(DIGITS / "val-000000.tar")},
                "test": {"shards": str(DIGITS / "test-000000.tar")},
                "image_size": 16,
                "index_cache": str(self.folder / "index"),
            },
            "batch": {"per_device": 16},
            "steps": 20,
            "optimizer": {"name": "sgd", "lr": 0.05},
            "log": {"every": {"steps": 1}},
            "output": str(self.folder / name),
        }
        recipe.update(changes)
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({k: v for k, v in recipe.items() if v is not None}))
        return path

    def start(self, *arguments, env=None, **popen):
        """Starts `scaletrain ARGUMENTS`; killed with all it started when the test ends."""
        marker = f"SCALETRAIN_TEST_MARKER={self.id()}-{time.monotonic_ns()}"
        name, value = marker.split("=")
        state = {"XDG_STATE_HOME": str(self.folder / "state")}  # nothing is left in the user's home
        process = subprocess.Popen(
            [str(SCALETRAIN), *map(str, arguments)], stdin=subprocess.DEVNULL,
            stdout=popen.pop("stdout", subprocess.PIPE), stderr=popen.pop("stderr", subprocess.PIPE),
            text=True, env={**os.environ, **state, **(env or {}), name: value}, cwd=self.folder, **popen)
        process.marker = marker
        self.addCleanup(self._end, process)
        return process

    def _end(self, process):
        process.kill()
        for pid in pids_with(process.marker):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        process.communicate()

    def run_scaletrain(self, *arguments, expect=0, env=None, timeout=TIMEOUT_S):
        """Runs to the end; the exit status must be `expect` and nothing may be left running."""
        process = self.start(*arguments, env=env)
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, expect, f"{arguments}\n--- out\n{out}\n--- err\n{err}")
        self.assert_nothing_left(process)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def faulty_libc(self):
        """The variables that put tests/end_to_end/faulty_libc.c under a run."""
        library = self.folder / "faulty_libc.so"
        if not library.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library,
                            pathlib.Path(__file__).parent / "faulty_libc.c", "-ldl"], check=True)
        return {"LD_PRELOAD": str(library), "FAULTY_CLOCK": str(self.folder / "clock"),
                "FAULTY_FSYNC": str(self.folder / "slow")}

    def assert_same_course(self, name, reference, first=1, most=1e-5):
        """What run `name` says of steps from `first` on, in training and evaluation, `reference` says
        too: the order, and numbers that differ by `most` of themselves. Of a mixture's shares a few
        tokens may: one that is as near to two experts goes to either."""
        for event in ("train", "eval"):
            expected, found = ({(r.get("split"), r["step"]): r for r in records(self.folder / run, event)
                                if r["step"] >= first} for run in (reference, name))
            self.assertTrue(found)
            self.assertEqual(sorted(expected, key=str), sorted(found, key=str))
            for place, ours in found.items():
                theirs = expected[place]
                for key in ("order_digest", "count"):
                    self.assertEqual(theirs.get(key), ours.get(key), f"{name}: {key} at {place}")
                wanted, numbers = (
                    {**{key: r[key] for key in ("loss", "grad_norm") if key in r}, **r.get("model", {})}
                    for r in (theirs, ours))
                self.assertEqual(wanted.keys(), numbers.keys())
                for key, value in numbers.items():
                    few = FEW_TOKENS if key in ours.get("model", {}) else 0
                    self.assertAlmostEqual(wanted[key], value, delta=most * abs(wanted[key]) + few,
                                           msg=f"{name}: {key} at {place}")

    def assert_nothing_left(self, process, within_s=10):
        deadline = time.monotonic() + within_s
        while pids_with(process.marker):
            self.assertLess(time.monotonic(), deadline, "processes are left behind")
            time.sleep(0.02)


def pids_with(marker):
    """The processes whose environment has `marker`, zombies left out."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # it has gone meanwhile
    return found


def command_line(pid):
    """The command line of a process, b"" of one that has gone meanwhile."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def records(run, event):
    """The records of metrics.jsonl with `event`, of each (split, step) the highest attempt."""
    newest = {}
    for line in (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # the torn line of a killed run
        if record["event"] == event:
            key = (record.get("split"), record["step"])
            if key not in newest or newest[key]["attempt"] <= record["attempt"]:
                newest[key] = record
    return [newest[key] for key in sorted(newest, key=lambda k: (k[0] or "", k[1]))]


def newest_saved(run):
    """The newest step that the run has reported as saved; 0: none."""
    try:
        saved = records(run, "checkpoint")
    except FileNotFoundError:
        return 0
    return max((record["step"] for record in saved), default=0)


def inspect(path):
    """`scaletrain checkpoint inspect --json`."""
    result = subprocess.run([SCALETRAIN, "checkpoint", "inspect", path, "--json"],
                            check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def state(run):
    """state.json of the run's newest checkpoint."""
    return json.loads((pathlib.Path(run) / "checkpoints/latest/state.json").read_text())


def seal(checkpoint):
    """Writes the manifest of a checkpoint anew, so that changed files have the right checksums."""
    path = checkpoint / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["manifest_sha256"]
    for name, entry in manifest["files"].items():
        data = (checkpoint / name).read_bytes()
        entry.clear()
        entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    body = json.dumps(manifest)[:-1]
    path.write_text(body + ',\n "manifest_sha256": "' + hashlib.sha256(body.encode()).hexdigest()
                    + '"\n}\n')


def wait_until(condition, what, timeout_s=120):
    """Returns what `condition` returns once that is true."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}")
        time.sleep(0.002)
    return value
