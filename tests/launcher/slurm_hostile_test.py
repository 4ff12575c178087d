"""No shell reads a value of a batch script: thousands of hostile strings as job names, accounts, options,
recipe paths and overrides."""

import os
import pathlib
import random
import re
import shutil
import subprocess
import unittest
import unittest.mock

from launcher.launch_support import BIN
from launcher.slurm_script_test import ScriptTestCase

LONG = os.environ.get("SCALETRAIN_LONG") == "1"
STRINGS = 10_000 if LONG else 2_000
IN_A_SCRIPT = 100
IN_A_PATH = 20
# Keeps the script and the words that it is given.
SBATCH = """#!/bin/bash
cat "$2" >"$TEST_FOLDER/script"
shift 2
printf '%s\\0' "$@" >"$TEST_FOLDER/called"
echo 77
"""
CONTROL = re.compile("[\x00-\x1f\x7f]")
COMMAND = "touch canary"
DRESSES = ["$({})", "`{}`", ";{};", "'; {}; '", "\"; {}; \"", "'$({})'", "\\'; {}; #", "| {}",
           "&& {}", "${{x:-$({})}}", "<({})", "# {}", "é ünï {}", "\u2028{}", "\x85{}", "%a {}",
           "--{}", "!{}", "*{}?", "~ {}", "#SBATCH --wrap={}", "\\", "'", "\""]
CONTROL_DRESSES = ["\n{}\n", "\r{}\r", "\t{}", "\x7f{}", "\x1b]0;{}\x07", "\x01{}"]
FILLER = "ab'\"\\ $`;&|<>(){}[]!#%=*?~^,.:-_/"


def hostile(chooser, dresses):
    """A string that would do harm if a shell read it: touch canary in one of many dresses."""
    parts = [chooser.choice(dresses).format(COMMAND) for _ in range(chooser.randint(1, 3))]
    filler = "".join(chooser.choice(FILLER) for _ in range(8))
    return "x" + "".join(chooser.sample([*parts, filler], len(parts) + 1))


def batches(items, size):
    return [items[begin:begin + size] for begin in range(0, len(items), size)]


@unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
class Hostile(ScriptTestCase):
    def setUp(self):
        # Thousands of folders are made and removed: in memory that is quick.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with unittest.mock.patch("tempfile.tempdir", memory):
            super().setUp()
        self.path = self.stand_ins()
        sbatch = self.folder / "stand-ins/sbatch"
        sbatch.write_text(SBATCH)
        sbatch.chmod(0o755)

    def as_file(self, values):
        """The recipe below folders with these names."""
        parts = [f"d{value.replace('/', '|')}" for value in values]
        path = self.folder.joinpath(*parts, "recipe.json")
        path.parent.mkdir(parents=True)
        shutil.copy(self.folder / "recipe.json", path)
        return path

    def flags(self, values):
        """Every value as an option of sbatch, and as a part of an override."""
        name, account, *others = values
        words = ["--job-name", name, "--account", account]
        for number, value in enumerate(others):
            words += ["--sbatch", f"opt-{chr(97 + number // 26)}{chr(97 + number % 26)}={value}"]
        overrides = ["output=" + "/".join([str(self.folder / "runs"), *group])
                     for group in batches(values, IN_A_PATH)]
        return words, [word for override in overrides for word in ("--set", override)]

    def test_the_scripts_stay_clean_and_the_words_whole(self):
        chooser = random.Random(7)
        self.recipe()
        scripts = self.folder / "scripts"
        scripts.mkdir()
        bodies = set()
        for number in range(STRINGS // IN_A_SCRIPT):
            values = [hostile(chooser, DRESSES) for _ in range(IN_A_SCRIPT)]
            recipe = self.as_file(values[:IN_A_PATH])
            options, overrides = self.flags(values)
            done = self.slurm(recipe, *options, *overrides, "--submit", env={"PATH": self.path})
            self.assertEqual("77\n", done.stdout)
            words = self.called_with()
            self.assertEqual([str(recipe), *overrides, "--grace", "90s"], words)
            script = (self.folder / "script").read_bytes()
            file = scripts / f"{number}.sh"
            file.write_bytes(script)
            lines = script.split(b"\n")
            bodies.add(b"\n".join(line for line in lines if not line.startswith(b"#SBATCH ")))
            for value in values:
                quoted = value.replace("\\", "\\\\").replace("'", "\\'")
                self.assertEqual(1, script.count(f"='{quoted}'\n".encode()), value)
            self.assertEqual(75, self.run_script(script.decode(), *words, status=75))
            self.assertEqual(["srun", "scaletrain", "launch", "--resume", "auto", *words,
                              "scontrol", "requeue", "12"], self.called_with())
        self.assertEqual(1, len(bodies))
        files = sorted(scripts.iterdir())
        # They differ in comments alone.
        done = subprocess.run(["shellcheck", *(files if LONG else files[:2])], capture_output=True,
                              text=True)
        self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))
        for file in files:
            done = subprocess.run(["bash", "-n", file], capture_output=True, text=True)
            self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))
        self.assert_nothing_executed()

    def test_control_characters_are_refused(self):
        chooser = random.Random(8)
        recipe = self.recipe()
        for flag in ("--job-name", "--account", "--partition", "--time", "--mem", "--qos"):
            for dress in CONTROL_DRESSES:
                value = hostile(chooser, [dress])
                process = self.start("slurm", recipe, flag, value, "--submit", env={"PATH": self.path})
                out, err = process.communicate()
                self.assertEqual((2, ""), (process.returncode, out), (flag, value))
                self.assertIn("holds a control character", err)
                self.assertIsNone(CONTROL.search(err.replace("\n", "")))
        self.assertEqual([], self.called_with())
        self.assert_nothing_executed()

    def assert_nothing_executed(self):
        for place in (self.folder, pathlib.Path.cwd(), BIN):
            self.assertFalse((place / "canary").exists(), place)


if __name__ == "__main__":
    unittest.main()
