"""What surrounds a run goes wrong: its clock, its console, its disk, its limits. No hang, no orphan."""

import fcntl
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest

from end_to_end import support

WORKER = support.BIN / "scaletrain-worker"


class SurroundingsTest(support.RunTestCase):
    def steps_done(self, run="recipe"):
        metrics = self.folder / run / "metrics.jsonl"
        return len(support.records(metrics.parent, "train")) if metrics.exists() else 0

    def start_slow(self, *flags, env=None, stderr=subprocess.PIPE, **changes):
        """A run of two ranks whose steps take 50 ms."""
        path = self.recipe(**{"steps": 60, **changes})
        return self.start("launch", "--nproc", 2, *flags, path, stderr=stderr,
                          env={"SCALETRAIN_FAULT": "slows@1", **(env or {})})

    def wait_for_steps(self, count):
        support.wait_until(lambda: self.steps_done() >= count, f"{count} steps")

    def test_a_clock_that_jumps_ends_nothing(self):
        process = self.start_slow("--hang-timeout", "20s", env=self.faulty_libc(),
                                  checkpoint={"every": {"steps": 10}})
        for steps, wrong_by in ((5, 3600), (20, -3600), (35, -1700000000), (50, 0)):
            self.wait_for_steps(steps)
            (self.folder / "clock.new").write_text(str(wrong_by))
            (self.folder / "clock.new").rename(self.folder / "clock")
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(0, process.returncode, err)
        times = [record["time"] for record in support.records(self.folder / "recipe", "train")]
        self.assertLess(min(times), 1e9)  # the clock did jump
        self.assertEqual(60, len(times))
        self.run_scaletrain("checkpoint", "verify", self.folder / "recipe")

    def test_a_console_that_nobody_reads_holds_up_nothing(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        self.addCleanup(os.close, reader)
        process = self.start("launch", "--nproc", 2, self.recipe(steps=40), stderr=writer)
        os.close(writer)
        self.assertEqual(0, process.wait(timeout=120))
        self.assertTrue((self.folder / "recipe/finished.json").exists())

    def test_a_save_that_the_grace_period_cuts_short_leaves_the_one_before(self):
        process = self.start_slow("--grace", "1s", env=self.faulty_libc(), steps=5000,
                                  checkpoint={"every": {"steps": 10}})
        support.wait_until(lambda: (self.folder / "recipe/checkpoints/step-00000010").exists(),
                           "a checkpoint")
        (self.folder / "slow").touch()
        process.terminate()
        _, err = process.communicate(timeout=60)
        self.assertEqual(75, process.returncode, err)
        self.assertIn("were killed before they had finished", err)
        self.assert_nothing_left(process)
        (self.folder / "slow").unlink()
        newest = support.inspect(self.folder / "recipe")["step"]
        self.assertEqual(0, newest % 10)  # the save of the stop is not there
        self.run_scaletrain("checkpoint", "verify", self.folder / "recipe")
        self.run_scaletrain("resume", self.folder / "recipe", "--nproc", 2,
                            "--set", f"steps={newest + 3}", "--allow", "steps")
        folders = {path.name for path in (self.folder / "recipe/checkpoints").iterdir()}
        self.assertFalse([name for name in folders if ".tmp" in name], folders)

    def test_ctrl_c_twice_while_it_saves_is_130_at_once(self):
        said = self.folder / "stderr"
        with said.open("w") as stderr:
            process = self.start_slow("--grace", "300s", env=self.faulty_libc(), stderr=stderr,
                                      steps=5000, checkpoint={"every": {"steps": 10}})
        support.wait_until(lambda: (self.folder / "recipe/checkpoints/step-00000010").exists(),
                           "a checkpoint")
        (self.folder / "slow").touch()
        process.send_signal(signal.SIGINT)
        # A second one that comes before the first was read is the same one.
        support.wait_until(lambda: "SIGINT: stopping 2 workers" in said.read_text(), "the stop")
        support.wait_until(lambda: list(self.folder.glob("recipe/checkpoints/*.tmp.*")), "the save")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(130, process.returncode, said.read_text())
        self.assertIn("SIGINT again: killing", said.read_text())
        self.assertLess(time.monotonic() - start, 2)
        self.assert_nothing_left(process)

    def test_a_console_that_is_full_or_gone_ends_nothing(self):
        for number, redirection in enumerate((">/dev/full 2>&1", "2>&1 | true", ">&- 2>&- <&-")):
            path = self.recipe(f"run{number}", steps=5)
            done = subprocess.run(
                ["bash", "-c", f"set -o pipefail; {support.SCALETRAIN} launch --nproc 2 {path} {redirection}"],
                stdin=subprocess.DEVNULL, timeout=support.TIMEOUT_S, check=False)
            self.assertEqual(0, done.returncode, redirection)
            self.assertEqual(5, self.steps_done(f"run{number}"))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "needs root for a small disk")
    def test_a_disk_for_logs_that_is_full_ends_nothing(self):
        logs = self.folder / "recipe/logs"
        logs.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", logs], check=True)
        self.addCleanup(subprocess.run, ["umount", logs], check=True)
        with self.assertRaises(OSError):
            (logs / "full").write_bytes(bytes(1 << 20))
        self.run_scaletrain("launch", "--nproc", 2, self.recipe(steps=5))
        self.assertEqual(5, self.steps_done())

    def with_terminal(self, *prefix):
        """A run with a terminal of its own, which goes away in the middle; its exit status."""
        path = self.recipe(steps=40, checkpoint={"every": {"steps": 1000}})
        command = [*prefix, str(support.SCALETRAIN), "launch", "--nproc", "2", str(path)]
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)  # nohup leaves a file
            os.environ["SCALETRAIN_FAULT"] = "slows@1"
            os.execvp(command[0], command)
        self.wait_for_steps(5)
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def test_a_terminal_that_goes_away_stops_the_run_with_a_checkpoint(self):
        self.assertEqual(75, self.with_terminal())
        self.assertEqual(support.inspect(self.folder / "recipe")["step"], self.steps_done())

    def test_with_nohup_it_goes_on(self):
        self.assertEqual(0, self.with_terminal("nohup"))
        self.assertEqual(40, self.steps_done())

    def test_a_launcher_that_is_stopped_goes_on_and_killed_leaves_nothing(self):
        process = self.start_slow(steps=5000)
        self.wait_for_steps(3)
        process.send_signal(signal.SIGSTOP)
        self.wait_for_steps(self.steps_done() + 3)  # the workers need no launcher
        process.kill()
        process.communicate(timeout=60)
        self.assert_nothing_left(process)

    def test_what_is_removed_in_mid_run_is_warned_about_and_written_again(self):
        run = self.folder / "recipe"
        process = self.start_slow(steps=100, checkpoint={"every": {"steps": 10}})
        self.wait_for_steps(3)
        files = [run / name for name in ("metrics.jsonl", "recipe.json", "environment.json")]
        recipe = files[1].read_text()
        for file in files:
            file.unlink()
        support.wait_until(lambda: all(file.exists() for file in files), "the files")
        self.assertEqual(recipe, files[1].read_text())
        support.wait_until(lambda: not shutil.rmtree(run, ignore_errors=True) and not run.exists(),
                           "the folder to be gone")
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(0, process.returncode, err)
        for file in files:
            self.assertGreaterEqual(err.count(f"warning: {file}: was removed during"), 2, err)
        self.assertEqual(100, support.records(run, "train")[-1]["step"])
        self.assertEqual(recipe, files[1].read_text())
        self.run_scaletrain("checkpoint", "verify", run)
        self.assertTrue((run / "finished.json").exists())

    def test_a_launcher_without_descriptors_or_processes_is_71(self):
        codes = {}
        for files in range(6, 40, 3):
            done = subprocess.run(
                ["sh", "-c", f"ulimit -n {files}; exec \"$@\"", "sh", support.SCALETRAIN, "launch",
                 "--nproc", "4", "--", "true"], stdin=subprocess.DEVNULL, capture_output=True,
                text=True, timeout=support.TIMEOUT_S, check=False)
            codes.setdefault(done.returncode, []).append((files, done.stderr))
        self.assertEqual({0, 71}, set(codes), codes)
        for _, err in codes[71]:
            self.assertRegex(err, r"EMFILE|Too many open files|free file descriptor")
        if shutil.which("strace"):
            for call in (("clone",), ("execve", "-P", "/bin/true")):
                done = subprocess.run(
                    ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call[0]}", *call[1:], "-e",
                     f"inject={call[0]}:error=EAGAIN", support.SCALETRAIN, "launch", "--",
                     "/bin/true"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                    timeout=support.TIMEOUT_S, check=False)
                self.assertEqual(71, done.returncode, done.stderr)
                self.assertIn("ulimit -u", done.stderr)

    def test_memory_that_is_not_there_is_71_and_descriptors_are_named(self):
        hungry = {"name": "mlp", "num_classes": 10, "hidden": 60000, "layers": 2}
        for limit, status, text, changes in (
                ("-v 6000000", 71, "lower /batch/per_device", {"model": hungry}),
                ("-n 63", 71, "open files: at most 63 are allowed", {}), ("-n 64", 0, "", {}),
                ("-Sn 20", 0, "", {})):  # may be raised
            path = self.recipe("run" + limit.replace(" ", ""), steps=2, **changes)
            done = subprocess.run(
                ["sh", "-c", f"ulimit {limit}; exec \"$@\"", "sh", support.SCALETRAIN, "launch",
                 "--nproc", "2", path], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=support.TIMEOUT_S, check=False)
            self.assertEqual(status, done.returncode, done.stderr)
            self.assertIn(text, done.stderr)

    @unittest.skipUnless(shutil.which("strace"), "needs strace to refuse threads")
    def test_threads_that_cannot_be_started_are_an_error_and_no_hang(self):
        path = self.recipe(steps=5)
        for first in (1, 2, 3, 4, 5):
            script = self.folder / "worker"
            script.write_text("#!/bin/sh\nexec strace -f -o /dev/null -e trace=clone3 "
                              f"-e inject=clone3:error=EAGAIN:when={first}+ {WORKER} \"$@\"\n")
            script.chmod(0o755)
            process = self.start("launch", "--worker", script, "--grace", "1s", path)
            _, err = process.communicate(timeout=120)
            self.assertEqual(71, process.returncode, err)
            self.assertIn("ulimit -u", err)
            self.assert_nothing_left(process)


if __name__ == "__main__":
    unittest.main()
