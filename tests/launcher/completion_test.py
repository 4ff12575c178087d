"""Completion in real shells and the manual through groff, from the one table of commands."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from launcher.launch_support import BIN, LIMIT_S, SCALETRAIN, LaunchTestCase


class Completion(LaunchTestCase):
    def script(self, shell):
        path = self.folder / f"scaletrain.{shell}"
        path.write_text(self.run_launcher("completion", shell).stdout)
        return path

    def in_shell(self, shell, *arguments):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        done = subprocess.run([shell, *arguments], capture_output=True, text=True, timeout=LIMIT_S,
                              cwd=self.folder, env=self.environment(
                                  {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(self.folder)}))
        self.assertEqual((0, ""), (done.returncode, done.stderr), arguments)
        return done.stdout

    def bash(self, line):
        return self.in_shell(
            "bash", "-c", "source <(scaletrain completion bash)\n"
                          f"COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}};"
                          "_scaletrain; printf '%s\\n' \"${COMPREPLY[@]}\"").split()

    def zsh(self, line):
        script = self.script("zsh")
        words = line.split(" ")
        listed = " ".join(f"'{word}'" for word in words)
        return self.in_shell(
            "zsh", "-f", "-c",
            # What compsys would show: the words before the first colon.
            "_describe() { local -a shown; shown=(${(P)2}); print -l -- ${shown%%:*} };"
            f"_files() {{ print files }}; compdef() {{ }}; source {script};"
            f"words=({listed}); CURRENT={len(words)}; _scaletrain").split()

    def fish(self, line):
        script = self.script("fish")
        shown = self.in_shell("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
        return [entry.split("\t")[0] for entry in shown.splitlines()]

    def check(self, complete):
        self.assertEqual(["launch"], complete("scaletrain laun"))
        self.assertLessEqual({"resume", "recipe", "queue", "data"}, set(complete("scaletrain ")))
        self.assertEqual(["--max-restarts"], complete("scaletrain launch --max-r"))
        self.assertEqual(["check"], complete("scaletrain recipe ch"))
        self.assertEqual(["launch"], complete("scaletrain help laun"))
        self.assertEqual({"node", "socket", "exclusive", "core-complex"},
                         set(complete("scaletrain launch --numa-binding ")))
        self.assertEqual({"optimizer.lr=", "optimizer.lr_base_batch=", "optimizer.lr_scaling="},
                         set(complete("scaletrain launch --set optimizer.lr")))
        self.assertEqual({"timm", "torchvision", "huggingface", "pt", "safetensors"},
                         set(complete("scaletrain checkpoint export run out --to ")))
        self.assertEqual({"raw", "llmc"}, set(complete("scaletrain data tokenize --layout ")))
        self.assertLessEqual({"parquet", "tar"}, set(complete("scaletrain data import ")))
        self.assertLessEqual({"optimizer.name=adamw", "optimizer.name=adam"},
                             {self.whole("optimizer.name=", word)
                              for word in complete("scaletrain launch --set optimizer.name=ada")})
        (self.folder / "runs/first/checkpoints/step-00000004").mkdir(parents=True, exist_ok=True)
        self.assertEqual(["runs/first"], complete("scaletrain status runs/f"))
        self.assertEqual(["runs/first"], complete("scaletrain resume "))
        self.assertEqual(["runs/first/checkpoints/step-00000004"], complete("scaletrain eval runs/first/"))

    def whole(self, key, word):
        """bash completes what follows "="."""
        return word if word.startswith(key) else key + word

    def test_bash(self):
        self.in_shell("bash", "-n", str(self.script("bash")))
        self.check(self.bash)
        # Behind = readline replaces the rest only.
        self.assertEqual(["auto"], self.bash("scaletrain launch --nproc=a"))
        self.assertEqual([], self.bash("scaletrain launch --log-dir x"))

    def test_zsh(self):
        self.in_shell("zsh", "-n", str(self.script("zsh")))
        self.check(self.zsh)
        self.assertEqual(["files"], self.zsh("scaletrain launch --log-dir x"))

    def test_fish(self):
        self.in_shell("fish", "--no-config", "-n", str(self.script("fish")))
        self.check(self.fish)
        (self.folder / "folder-of-logs").mkdir()
        self.assertEqual(["folder-of-logs/"], self.fish("scaletrain launch --log-dir folder-of"))

    def test_the_commands_of_scaletrain_data(self):
        self.assertEqual(["tokenize"], self.bash("scaletrain data tok"))

    def test_another_shell_is_refused(self):
        self.assertIn("use one of: bash, zsh, fish",
                      self.run_launcher("completion", "csh", expect=2).stderr)


class Manual(LaunchTestCase):
    def test_a_page_fits_the_terminal_and_has_its_sections(self):
        if shutil.which("man") is None:
            self.skipTest("man is not installed")
        for words in (["launch"], ["checkpoint", "export"], ["data"], ["data", "pack"], []):
            ours, terminal = os.openpty()
            process = subprocess.Popen([SCALETRAIN, "man", *words], stdin=terminal, stdout=terminal, stderr=terminal,
                                       env=self.environment({"MANWIDTH": "80", "MANPAGER": "cat", "PAGER": "cat",
                                                             "TERM": "dumb", "LC_ALL": "C.UTF-8"}))
            os.close(terminal)
            text = b""
            while True:
                try:
                    read = os.read(ours, 65536)
                except OSError:  # EIO: the program has ended
                    break
                if not read:
                    break
                text += read
            os.close(ours)
            self.assertEqual(0, process.wait(timeout=LIMIT_S))
            # Bold and underlined letters: typed twice, or between escape sequences.
            plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", text.decode()).replace("\r", "")
            with self.subTest(words=words):
                lines = plain.splitlines()
                self.assertLessEqual({"NAME", "SYNOPSIS", "OPTIONS", "EXAMPLES", "FILES", "EXIT STATUS", "SEE ALSO"},
                                     set(lines))
                if words == ["checkpoint", "export"]:
                    self.assertEqual([], [line for line in lines if len(line) > 80])

    def test_groff_has_nothing_to_say(self):
        if shutil.which("groff") is None:
            self.skipTest("groff is not installed")
        pages = self.folder / "man"
        self.run_launcher("man", "--write", pages)
        names = {path.name for path in pages.iterdir()}
        self.assertLessEqual({"scaletrain.1", "scaletrain-launch.1", "scaletrain-data.1"}, names)
        for page in sorted(pages.iterdir()):
            done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", page],
                                  capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual((0, ""), (done.returncode, done.stderr), page)

    def test_a_page_has_every_flag_of_its_command(self):
        done = subprocess.run([SCALETRAIN, "launch", "--help"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=True)
        flags = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w-])", done.stdout))
        page = self.run_launcher("man", "launch").stdout.replace("\\-", "-")
        self.assertLess(25, len(flags))
        self.assertEqual(set(), {flag for flag in flags if flag not in page})

    def test_man_shows_it(self):
        if shutil.which("man") is None:
            self.skipTest("man is not installed")
        with tempfile.NamedTemporaryFile("w", suffix=".1", dir=self.folder, delete=False) as file:
            file.write(self.run_launcher("man", "recipe", "check").stdout)
        done = subprocess.run(["man", "-l", pathlib.Path(file.name)], capture_output=True,
                              text=True, timeout=LIMIT_S, env=self.environment({"MANWIDTH": "100"}))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("scaletrain recipe check", done.stdout)


if __name__ == "__main__":
    unittest.main()
