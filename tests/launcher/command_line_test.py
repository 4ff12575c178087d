"""The command line of scaletrain: mistakes, help, output that is not taken, commands of other programs."""

import fcntl
import json
import os
import struct
import subprocess
import termios
import unittest

from launcher.launch_support import LIMIT_S, ROOT, SCALETRAIN, LaunchTestCase


class CommandLine(LaunchTestCase):
    def test_mistakes_name_the_remedy(self):
        cases = [
            (["launch", "--npoc", "2", "--", "true"],
             "scaletrain launch: there is no flag --npoc\n  scaletrain launch --help lists the "
             "flags; did you mean \"--nproc\"?\n"),
            (["launch"], "launch: nothing to run is given\n  scaletrain launch RECIPE, or "
                         "scaletrain launch -- PROGRAM ARGS...\n"),
            (["launch", "--"], "launch: no program follows --\n  scaletrain launch -- PROGRAM "
                               "ARGS...\n"),
            (["launch", "a.json", "--", "true"],
             "launch: a recipe and a program after --\n  give one of them\n"),
            (["launch", "--set", "a=1", "--", "true"],
             "--set: is for recipes, and a program follows --\n  leave it out\n"),
            (["launch", "--grace", "10", "--", "true"],
             "--grace: \"10\" is not a duration\n  give a whole number and a unit: 500ms, 10s, 5m, 2h\n"),
            (["launch", "-np", "2", "--", "true"],
             "scaletrain launch: there is no flag -np\n  scaletrain launch --help lists the flags; "
             "here it is --nproc\n"),
            (["launch", "--batch-size", "8", "r.json"],
             "scaletrain launch: there is no flag --batch-size\n  scaletrain launch --help lists the "
             "flags; here it is --set batch.per_device=N\n"),
            (["launch", "r.json", "--epochs", "3"],
             "scaletrain launch: there is no flag --epochs\n  a key of the recipe is set by --set "
             "epochs=VALUE\n"),
            (["launch", "r.json", "--drop_last", "true"],
             "scaletrain launch: there is no flag --drop_last\n  leave it out: the incomplete last batch of an epoch "
             "is always dropped\n"),
            (["launch", "r.json", "optimizer.lr=1"],
             "scaletrain launch: \"optimizer.lr\" is one argument too many\n  a key of the recipe is "
             "set by --set optimizer.lr=VALUE\n"),
            (["recipe", "check", "r.json", "--weight-decay=1"],
             "scaletrain recipe check: there is no flag --weight-decay\n  a key of the recipe is set "
             "by --set optimizer.weight_decay=VALUE\n"),
            (["recipe", "validate", "r.json"],
             "scaletrain recipe: there is no command \"validate\"\n  use one of: check, show, schema, "
             "reference, models, new, lint; here it is check\n"),
            (["recipe"], "scaletrain recipe: a command is missing\n  use one of: check, "
                         "show, schema, reference, models, new, lint\n"),
            (["data", "list", "set"],
             "scaletrain data: there is no command \"list\"\n  use one of: pack, index, check, ls, get, "
             "stats, split, dedup, import, tokenize, card, synth, bench, mirror, fetch-run, advise; here it is ls\n"),
            (["data", "check", "--fix", "set"],
             "scaletrain data check: there is no flag --fix\n  scaletrain data check --help lists the "
             "flags; here it is --repair\n"),
            (["resume"], "scaletrain resume: PATH is required\n  scaletrain resume --help lists the flags\n"),
        ]
        for arguments, text in cases:
            done = subprocess.run([SCALETRAIN, *arguments], capture_output=True, text=True,
                                  timeout=LIMIT_S, env=self.environment(), cwd=self.folder)
            self.assertEqual((2, text), (done.returncode, done.stderr), arguments)
        done = self.run_launcher("run", "train.py", expect=2)
        self.assertRegex(done.stderr, r'^scaletrain: there is no command "run"\n  use one of: .*, '
                                      r'data; here it is launch\n$')
        done = self.run_launcher("lanch", expect=2)
        self.assertRegex(done.stderr, r'^scaletrain: there is no command "lanch"\n  use one of: '
                                      r'launch, [a-z0-9, -]+; did you mean "launch"\?\n$')

    def test_a_program_that_is_no_recipe_and_one_that_cannot_run_name_the_way(self):
        (self.folder / "train.sh").write_text("echo hi\n")
        (self.folder / "train.py").write_text("print()\n")
        (self.folder / "tool").write_text("#!/bin/sh\nexit 0\n")
        cases = [
            (["ls"], "ls: is a program, but a recipe is expected here\n"
                     "  put -- before a program: scaletrain launch -- ls ARGS...\n"),
            (["train.sh"], "train.sh: is a program, but a recipe is expected here\n"
                           "  put -- before a program: scaletrain launch -- ./train.sh ARGS...\n"),
            (["no.sh"], "no.sh: is not a file\n"
                        "  put -- before a program: scaletrain launch -- no.sh ARGS...\n"),
            (["tool"], "tool: is a program, but a recipe is expected here\n"
                       "  put -- before a program: scaletrain launch -- ./tool ARGS...\n"),
            (["no.json"], "no.json: cannot be read: No such file or directory (ENOENT)\n"
                          "  check the path\n"),
            (["--", "./train.py"], "./train.py: is not executable\n"
                                   "  chmod +x ./train.py, or name its interpreter: -- python ./train.py\n"),
            (["--", "train.sh"], "train.sh: is not executable\n"
                                 "  chmod +x ./train.sh, or name its interpreter: -- sh train.sh\n"),
        ]
        for words, text in cases:
            self.assertEqual(text, self.run_launcher("launch", *words, expect=2).stderr)
        (self.folder / "tool").chmod(0o755)
        self.assertEqual("tool: is not on PATH\n  it is in this folder: -- ./tool\n",
                         self.run_launcher("launch", "--", "tool", expect=2).stderr)
        self.run_launcher("launch", "--", "./tool")

    def test_a_working_directory_that_was_removed_is_named(self):
        for words in (["launch", "r.json"], ["data", "ls", "a.tar"]):
            with self.subTest(words):
                gone = self.folder / "gone"
                gone.mkdir()
                done = subprocess.run(["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", SCALETRAIN, *words], cwd=gone,
                                      capture_output=True, text=True, check=False, timeout=LIMIT_S)
                self.assertEqual((2, "the working directory: is gone: No such file or directory\n"
                                     "  change to a folder that exists\n"), (done.returncode, done.stderr))

    def test_help_shows_what_a_flag_help_shows(self):
        for words in ([], ["launch"], ["recipe", "check"], ["data", "pack"]):
            self.assertEqual(self.run_launcher(*words, "--help").stdout,
                             self.run_launcher("help", *words).stdout)
        self.assertIn('there is no command "lanch"', self.run_launcher("help", "lanch", expect=2).stderr)

    def all_commands(self):
        """The words of every command, below those of scaletrain data too: ["recipe", "check"]."""
        def below(table, words):
            yield words
            for command in table["commands"]:
                yield from below(command, [*words, command["name"]])

        for words in ([], ["data"]):
            table = json.loads(self.run_launcher(*words, "--command-table").stdout)
            yield from below(table, words)

    def test_help_fits_the_width_and_has_its_sections(self):
        commands = list(self.all_commands())
        self.assertLess(50, len(commands))
        for width in (80, 60):
            for words in commands:
                done = subprocess.run([SCALETRAIN, *words, "--help"], capture_output=True, text=True, check=True,
                                      timeout=LIMIT_S, env=self.environment({"COLUMNS": str(width)}))
                with self.subTest(words=words, width=width):
                    self.assertEqual([], [line for line in done.stdout.splitlines() if len(line) > width])
                    self.assertIn(f"\nUsage: {' '.join(['scaletrain', *words])} [OPTIONS]",
                                  done.stdout.replace("\n       ", " "))
                    self.assertIn("\nOptions:\n  -h, --help", done.stdout)
                    self.assertEqual(1, done.stdout.count("\nExamples:\n"))
                    # Those of other commands are not shown.
                    example = done.stdout.split("\nExamples:\n")[1]
                    if words:
                        self.assertIn(" ".join(["scaletrain", *words]), example.replace(" \\\n      ", " "))

    def test_the_help_of_launch_has_groups_and_defaults(self):
        text = " ".join(self.run_launcher("launch", "--help").stdout.split())
        for part in ("Workers: --nproc", "Several nodes: --nnodes", "Restarts and time limits:", "Recipe: --set "
                                                                                                 "KEY=VALUE",
                     "Programs after --:", "Compatibility with torchrun:", "Default: 10m for recipes",
                     "Environment: PET_NNODES."):
            self.assertIn(part, text)

    def test_help_is_as_wide_as_the_terminal(self):
        ours, terminal = os.openpty()
        self.addCleanup(os.close, ours)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        environment = self.environment()
        environment.pop("COLUMNS", None)
        process = subprocess.Popen([SCALETRAIN, "status", "--help"], stdout=terminal, env=environment)
        os.close(terminal)
        text = ""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # EIO: the program has ended
                break
            if not read:
                break
            text += read.decode()
        self.assertEqual(0, process.wait(timeout=LIMIT_S))
        lines = text.replace("\r", "").splitlines()
        self.assertLess(10, len(lines))
        self.assertLessEqual(max(map(len, lines)), 50)

    def test_the_reference_of_commands_is_what_the_program_prints(self):
        text = self.run_launcher("help", "--markdown").stdout
        self.assertIn("\n## launch\n", text)
        self.assertIn("\n### data tokenize\n", text)
        self.assertEqual((ROOT / "docs/reference/commands.md").read_text(), text,
                         "write it again: scaletrain help --markdown > docs/reference/commands.md")

    def test_version_and_help(self):
        self.assertRegex(self.run_launcher("--version").stdout,
                         r"\Ascaletrain \d+\.\d+\.\d+\ncommit ([0-9a-f]{12}|unknown)\nLibTorch \S.*\n"
                         r"CUDA \S+\nNCCL \S+\n\Z")
        self.assertIn("--max-restarts", self.run_launcher("launch", "--help").stdout)

    def test_a_home_that_no_shell_has_expanded(self):
        recipe = self.folder / "r.json"
        recipe.write_text(json.dumps({"model": {"name": "mlp", "num_classes": 2}, "epochs": 1,
                                      "data": {"train": {"shards": str(recipe)}}, "output": "~/runs/x",
                                      "optimizer": {"name": "sgd", "lr": 0.1}}))
        for flags in ([], ["--set", "output=~/runs/x"]):
            shown = json.loads(self.run_launcher("recipe", "show", recipe, *flags).stdout)
            self.assertEqual(os.path.expanduser("~/runs/x"), shown["output"])
        for place, words in (('--set output: "~nosuchuser/x"', [recipe, "--set", "output=~nosuchuser/x"]),
                             ('--set data.train.shards: /data/train/shards/0: "~nosuchuser/a.tar"',
                              [recipe, "--set", 'data.train.shards=["~nosuchuser/a.tar"]']),
                             ('--set checkpoint.mirror: "~nosuchuser"',
                              [recipe, "--set", "checkpoint.mirror=~nosuchuser"]),
                             ("~nosuchuser/r.json", ["~nosuchuser/r.json"]),
                             ("--worker=~nosuchuser/w", [recipe, "--worker=~nosuchuser/w"])):
            self.assertIn(f'{place}: there is no user "nosuchuser" on this machine\n  correct the name; ',
                          self.run_launcher("recipe", "show", *words, expect=2).stderr)
        env = {"HOME": str(self.folder)}
        self.assertIn("there is no user", self.run_launcher("data", "synth", "~nosuchuser/x", env=env, expect=2).stderr)
        self.assertEqual([recipe], list(self.folder.iterdir()))

    def test_output_that_is_not_taken_is_an_error_unless_its_reader_has_gone(self):
        commands = [["--help"], ["launch", "--help"], ["--version"], ["recipe", "schema"],
                    ["man"], ["completion", "bash"], ["explain", "launch", "--", "true"],
                    ["data", "--help"], ["queue", "--show"], ["--command-table"],
                    ["help", "--markdown"]]
        for words in commands:
            for target, expected in ((["/dev/full"], (74, "standard output: No space left on device "
                                                          "(ENOSPC)\n")), ([], (0, ""))):
                ours, gone = os.pipe()
                os.close(ours)
                with open(target[0] if target else gone, "w") as output:
                    done = subprocess.run([SCALETRAIN, *words], stdout=output, text=True,
                                          stderr=subprocess.PIPE, cwd=self.folder,
                                          timeout=LIMIT_S, env=self.environment())
                self.assertEqual(expected, (done.returncode, done.stderr), words)
                if target:
                    os.close(gone)

    def test_another_program_adds_a_command(self):
        program = self.folder / "scaletrain-hello"
        program.write_text("#!/bin/sh\necho hello \"$@\"\nexit 7\n")
        program.chmod(0o755)
        done = self.run_launcher("hello", "a", "b c", expect=7,
                                 env={"PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertEqual("hello a b c\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
