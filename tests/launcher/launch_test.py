"""scaletrain launch -- PROGRAM: the contract of torchrun, and what is better."""

import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
import time
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase


def report(text):
    """A report with the host's name and process numbers taken out."""
    return re.sub(r"\(host [^,]+, local rank (\d+), pid \d+\)", r"(local rank \1)", text)


class Contract(LaunchTestCase):
    def test_omp_num_threads_is_one_unless_set_or_alone(self):
        script = "echo ${OMP_NUM_THREADS-unset}"
        for nproc, env, expected in ((2, {}, "1\n1\n"), (1, {}, "unset\n"),
                                     (2, {"OMP_NUM_THREADS": "3"}, "3\n3\n")):
            done = self.run_launcher("launch", "--nproc", nproc, "--", "sh", "-c", script, env=env)
            self.assertEqual(expected, done.stdout)
            self.assertEqual("", done.stderr)

    def test_spellings_and_pet_variables_are_torchruns(self):
        script = ["--", "sh", "-c", "echo $WORLD_SIZE $TORCHELASTIC_MAX_RESTARTS"]
        for flags in (["--nproc=2", "--max-restarts=4"], ["--nproc-per-node=2", "--max_restarts=4"],
                      ["--nproc_per_node", "2", "--max-restarts", "4"]):
            self.assertEqual("2 4\n2 4\n", self.run_launcher("launch", *flags, *script).stdout)
        pet = {"PET_NPROC_PER_NODE": "2", "PET_MAX_RESTARTS": "4"}
        self.assertEqual("2 4\n2 4\n", self.run_launcher("launch", *script, env=pet).stdout)
        done = self.run_launcher("launch", "--nproc", "1", *script, env=pet)
        self.assertEqual("1 4\n", done.stdout)

    def test_log_dir_has_torchruns_layout(self):
        done = self.run_launcher("launch", "--nproc", 2, "--log-dir", "logs", "--", "sh", "-c",
                                 "echo out $RANK; echo err $RANK >&2")
        self.assertEqual(["out 0", "out 1"], sorted(done.stdout.splitlines()))
        self.assertEqual(["err 0", "err 1"], sorted(done.stderr.splitlines()))
        (run,) = (self.folder / "logs").iterdir()
        self.assertRegex(run.name, r"^none_[a-z0-9_]{8}$")
        for rank in ("0", "1"):
            folder = run / "attempt_0" / rank
            self.assertEqual(f"out {rank}\n", (folder / "stdout.log").read_text())
            self.assertEqual(f"err {rank}\n", (folder / "stderr.log").read_text())

    def test_temporary_folders_are_removed(self):
        self.run_launcher("launch", "--", "true")
        self.run_launcher("launch", "--", "false", expect=1)
        self.assertEqual([], list(self.folder.iterdir()))


    def test_a_tmpdir_that_is_not_there_does_no_harm(self):
        env = {"TMPDIR": "/nonexistent", "TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
        done = self.run_launcher("launch", "--", "sh", "-c", "echo $TORCHELASTIC_TIMER_FILE", env=env)
        self.assertRegex(done.stdout, "^/tmp/watchdog_timer_")

    def test_the_logs_of_a_failure_stay_when_a_restart_succeeds(self):
        script = "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; echo boom >&2; exit 3"
        done = self.run_launcher("launch", "--max-restarts", 1, "--redirects", 3, "--", "sh", "-c",
                                 script)
        log = re.search(r"its log: (\S+)", done.stderr).group(1)
        self.assertEqual("boom\n", pathlib.Path(log).read_text())


class Failures(LaunchTestCase):
    def test_75_of_a_program_means_nothing_and_who_was_stopped_is_not_the_first(self):
        script = ("trap 'exit 1' TERM; touch ready$RANK;"
                  "[ $RANK = 2 ] && { until [ -e ready0 ] && [ -e ready1 ]; do sleep 0.05; done;"
                  "exit 75; }; while :; do sleep 0.05; done")
        done = self.run_launcher("launch", "--nproc", 3, "--", "sh", "-c", script, expect=1)
        self.assertRegex(report(done.stderr),
                         r"rank 2 failed first: exit code 75 \(local rank 2\)\n"
                         r"  after it: rank [01]: exit code 1, rank [01]: exit code 1\n$")

    def test_a_progress_bar_leaves_its_last_state_in_the_report(self):
        script = "for i in 1 2 3; do printf '\\r%s of 3' $i >&2; done; echo ': boom' >&2; exit 3"
        done = self.run_launcher("launch", "--", "sh", "-c", script, expect=1)
        self.assertTrue(done.stderr.endswith("standard error:\n    | 3 of 3: boom\n"), done.stderr)

    def test_a_line_without_its_end_is_shown_soon(self):
        process = self.start("launch", "--", "sh", "-c",
                             "printf 'go on? ' >&2; while [ ! -e go ]; do sleep 0.05; done")
        self.assertEqual("go on? ", process.stderr.read(7))
        (self.folder / "go").touch()
        self.assertEqual(0, process.wait(LIMIT_S))

    def test_the_report_starts_on_a_line_of_its_own(self):
        for flags, script in (([], "printf 'no end' >&2; exit 3"),
                              ([], "printf '50%%\\r' >&2; exit 3"),
                              (["--tee", "2"], "printf 'no end' >&2; exit 3")):
            done = self.run_launcher("launch", *flags, "--", "sh", "-c", script, expect=1)
            self.assertRegex(done.stderr, r"(no end|50%)\nrank 0 failed first")
        done = self.run_launcher("launch", "--", "sh", "-c", "printf 'no end' >&2")
        self.assertEqual("no end", done.stderr)

    def test_the_first_failure_is_named_with_its_last_lines(self):
        script = "[ $RANK = 0 ] && exec sleep 1000; seq 1 30 >&2; exit 17"
        done = self.run_launcher("launch", "--nproc", 2, "--", "sh", "-c", script, expect=1)
        lines = "".join(f"    | {number}\n" for number in range(11, 31))
        self.assertEqual("".join(f"{number}\n" for number in range(1, 31)) +
                         "rank 1 failed first: exit code 17 (local rank 1)\n"
                         "  the last lines of its standard error:\n" + lines, report(done.stderr))

    def test_a_signal_is_named(self):
        script = "[ $RANK = 1 ] && exec sleep 1000; kill -SEGV $$"
        done = self.run_launcher("launch", "--nproc", 2, "--", "sh", "-c", script, expect=1)
        self.assertEqual("rank 0 failed first: killed by SIGSEGV (local rank 0)\n",
                         report(done.stderr))

    def test_the_error_file_tells_the_cause(self):
        script = ("printf '{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": "
                  "{\"timestamp\": \"1\"}}}' >$TORCHELASTIC_ERROR_FILE; exit 1")
        done = self.run_launcher("launch", "--", "sh", "-c", script, expect=1)
        self.assertRegex(report(done.stderr),
                         r"^rank 0 failed first: exit code 1 \(local rank 0\)\n"
                         r"  cause: ValueError: boom\n"
                         r"  its error file: \S+/attempt_0/0/error.json\n$")
        kept = re.search(r"its error file: (\S+)", done.stderr).group(1)
        self.assertIn("boom", pathlib.Path(kept).read_text())

    def test_a_worker_that_ignores_sigterm_is_killed_after_the_grace_period(self):
        script = ("[ $RANK = 1 ] && { while [ ! -e ready ]; do :; done; exit 3; };"
                  "trap '' TERM; touch ready; while :; do sleep 0.1; done")
        start = time.monotonic()
        done = self.run_launcher("launch", "--nproc", 2, "--grace", "500ms", "--", "sh", "-c",
                                 script, expect=1)
        self.assertGreater(time.monotonic() - start, 0.5)
        self.assertLess(time.monotonic() - start, 20)
        self.assertEqual("rank 1 failed first: exit code 3 (local rank 1)\n", report(done.stderr))

    def test_children_of_workers_are_gone_too(self):
        self.run_launcher("launch", "--", "sh", "-c", "sleep 1000 & exit 3", expect=1)
        self.run_launcher("launch", "--", "sh", "-c", "sleep 1000 & exit 0")

    def test_a_worker_may_end_before_the_others(self):
        script = "[ $RANK = 0 ] && exit 0; while [ ! -e go ]; do sleep 0.01; done"
        process = self.start("launch", "--nproc", 2, "--", "sh", "-c", script)
        (self.folder / "go").touch()
        self.assertEqual(0, process.wait(LIMIT_S))

    def test_a_program_that_does_not_exist_is_a_usage_error(self):
        done = self.run_launcher("launch", "--", "no-such-program", expect=2)
        self.assertEqual("no-such-program: is neither an executable file nor on PATH\n"
                         "  check the program after --\n", done.stderr)

    def test_a_store_that_cannot_be_served_is_told(self):
        # A launcher of its own, without the worker beside it.
        shutil.copy(SCALETRAIN, self.folder / "scaletrain")
        script = ("import os,socket,time;"
                  "socket.create_connection((os.environ['MASTER_ADDR'],"
                  "int(os.environ['MASTER_PORT']))); time.sleep(1000)")
        done = subprocess.run([self.folder / "scaletrain", "launch", "--", sys.executable, "-c",
                               script], capture_output=True, text=True, timeout=LIMIT_S,
                              env=self.environment())
        self.assertEqual(1, done.returncode)
        self.assertEqual(
            "a worker asked for the store, and it cannot be started: "
            f"{self.folder}/scaletrain-worker: cannot be executed: "
            "No such file or directory (ENOENT)\n  name an executable file\n", done.stderr)
        self.assert_nothing_left()


class Restarts(LaunchTestCase):
    def test_a_restart_starts_all_again_with_a_new_port(self):
        script = ("echo $TORCHELASTIC_RESTART_COUNT $MASTER_PORT >>ports$RANK;"
                  "[ $TORCHELASTIC_RESTART_COUNT = 2 ]")
        done = self.run_launcher("launch", "--max-restarts", 2, "--", "sh", "-c", script)
        counts, ports = zip(*(line.split() for line in
                              (self.folder / "ports0").read_text().splitlines()))
        self.assertEqual(("0", "1", "2"), counts)
        self.assertEqual(3, len(set(ports)))
        self.assertEqual(
            "rank 0 failed first: exit code 1 (local rank 0)\n  starting again: restart 1 of 2\n"
            "rank 0 failed first: exit code 1 (local rank 0)\n  starting again: restart 2 of 2, in 1 s\n",
            report(done.stderr))

    def test_restarts_end(self):
        script = "echo x >>attempts; exit 5"
        self.run_launcher("launch", "--max-restarts", 2, "--", "sh", "-c", script, expect=1)
        self.assertEqual("x\n" * 3, (self.folder / "attempts").read_text())

    def test_a_fixed_port_serves_every_attempt(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        script = f"[ $MASTER_PORT = {port} ] && [ $TORCHELASTIC_RESTART_COUNT = 1 ]"
        self.run_launcher("launch", "--master-port", port, "--max-restarts", 1, "--", "sh", "-c",
                          script)

    def test_a_port_in_use_starts_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = self.run_launcher("launch", "--master-port", port, "--", "touch", "started",
                                     expect=2)
        self.assertEqual(f"--master-port {port}: cannot listen on it: Address already in use "
                         "(EADDRINUSE)\n  give another port, or leave the flag out to get a free "
                         "one\n", done.stderr)
        self.assertFalse((self.folder / "started").exists())


class Signals(LaunchTestCase):
    WORKER = "touch ready$RANK; while :; do sleep 0.05; done"

    def started(self, script, *flags):
        process = self.start("launch", "--nproc", 2, *flags, "--", "sh", "-c", script)
        self.wait_for_files("ready0", "ready1")
        return process

    def test_signals_are_forwarded_and_end_with_1(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
                       signal.SIGUSR1, signal.SIGUSR2):
            name = number.name[3:]
            process = self.started(f"trap 'touch {name}$RANK; exit 9' {name};" + self.WORKER)
            process.send_signal(number)
            _, err = process.communicate(timeout=LIMIT_S)
            self.assertEqual(1, process.returncode, err)
            self.wait_for_files(f"{name}0", f"{name}1")
            self.assertIn(f"{number.name}: stopping 2 workers, 30.0 s for them to finish\n", err)
            self.assertNotIn("failed first", err)
            for rank in (0, 1):
                (self.folder / f"ready{rank}").unlink()

    # Writes without end, and has last words before it saves.
    TALKER = ("trap 'echo saving >&2; touch saved$RANK; exit 0' TERM; touch ready$RANK;"
              "while :; do echo a line of rank $RANK >&2; done")

    def test_a_console_that_takes_nothing_holds_no_stop_up(self):
        ours, console = os.pipe()
        self.addCleanup(os.close, ours)
        process = self.start("launch", "--nproc", 2, "--", "sh", "-c", self.TALKER,
                             stdout=console, stderr=console)
        os.close(console)
        self.wait_for_files("ready0", "ready1")
        filled = lambda: fcntl.ioctl(ours, termios.FIONREAD, b"1234")
        before = b""
        while before != (before := filled()):
            time.sleep(0.3)
        start = time.monotonic()
        process.terminate()
        self.assertEqual(1, process.wait(LIMIT_S))
        self.assertLess(time.monotonic() - start, 15)  # less than the grace period
        self.wait_for_files("saved0", "saved1")
        self.assert_nothing_left()

    def test_a_stopped_terminal_holds_no_stop_up(self):
        ours, terminal = os.openpty()
        self.addCleanup(os.close, ours)
        process = self.start("launch", "--nproc", 2, "--", "sh", "-c", self.TALKER,
                             stdout=terminal, stderr=terminal)
        os.read(ours, 100)
        termios.tcflow(terminal, termios.TCOOFF)  # Ctrl-S
        self.addCleanup(os.close, terminal)
        self.wait_for_files("ready0", "ready1")
        process.terminate()
        self.assertEqual(1, process.wait(LIMIT_S))
        self.wait_for_files("saved0", "saved1")
        self.assert_nothing_left()

    def test_a_second_ctrl_c_ends_at_once(self):
        process = self.started("trap '' INT TERM;" + self.WORKER)
        process.send_signal(signal.SIGINT)
        self.assertIn("SIGINT: stopping", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(1, process.wait(LIMIT_S))
        self.assert_nothing_left()

    def test_a_stopped_job_is_not_restarted(self):
        process = self.started(self.WORKER, "--max-restarts", 5)
        process.terminate()
        _, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(1, process.returncode)
        self.assertNotIn("starting again", err)

    def test_a_signal_that_was_ignored_stays_ignored(self):
        done = subprocess.run(
            ["sh", "-c", f"trap '' HUP; exec {SCALETRAIN} launch -- sh -c 'kill -HUP $PPID; sleep 0.3'"],
            capture_output=True, text=True, timeout=LIMIT_S, cwd=self.folder, env=self.environment())
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_workers_die_with_a_killed_launcher(self):
        process = self.started("exec sh -c '" + self.WORKER + "'")
        process.kill()
        process.wait(LIMIT_S)
        self.assert_nothing_left()

    def test_an_ignored_sigchld_does_no_harm(self):
        done = subprocess.run(["sh", "-c", f"trap '' CHLD; exec {SCALETRAIN} launch -- sh -c 'exit 3'"],
                              capture_output=True, text=True, timeout=LIMIT_S, cwd=self.folder,
                              env=self.environment())
        self.assertEqual(1, done.returncode)
        self.assertEqual("rank 0 failed first: exit code 3 (local rank 0)\n", report(done.stderr))

    def test_a_closed_console_does_no_harm(self):
        for closed in (">&-", "2>&-", ">&- 2>&- <&-", "| true", "2>&1 | true"):
            shutil.rmtree(self.folder / "logs", ignore_errors=True)
            script = "echo out; echo err >&2; echo done >done"
            subprocess.run(
                ["bash", "-c", f"set -o pipefail; {SCALETRAIN} launch --log-dir logs -- "
                               f"sh -c '{script}' {closed}"],
                timeout=LIMIT_S, cwd=self.folder, env=self.environment(), check=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.assertTrue((self.folder / "done").exists(), closed)
            (self.folder / "done").unlink()


if __name__ == "__main__":
    unittest.main()
