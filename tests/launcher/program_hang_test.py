"""--hang-timeout for any program: it beats by writing to the file that SCALETRAIN_BEAT_FILE names."""

import os
import signal
import socket
import time
import unittest

from launcher.launch_support import LIMIT_S, LaunchTestCase

BEAT = "touch ready$RANK; n=0; while :; do n=$((n+1)); echo step $n >$SCALETRAIN_BEAT_FILE; sleep 0.05; done"
HOST = socket.gethostname()


class ProgramHang(LaunchTestCase):
    def hang(self, script, expect_s, *flags):
        """The report of a job that hangs; it must be told in time."""
        start = time.monotonic()
        done = self.run_launcher("launch", "--nproc", 2, "--hang-timeout", "2s", "--grace", "300s",
                                 *flags, "--", "sh", "-c", script, expect=75)
        self.assertGreater(time.monotonic() - start, 2)
        self.assertLess(time.monotonic() - start, expect_s)
        return done.stderr

    def test_a_rank_that_stops_beating_is_named_with_its_last_words(self):
        report = self.hang(f"[ $RANK = 1 ] && {{ echo step 7 >$SCALETRAIN_BEAT_FILE; exec sleep 1000; }}; {BEAT}",
                           2 + 5)
        self.assertRegex(report, rf"^rank 1 on host {HOST} does not beat \(local rank 1, pid \d+\)\n"
                                 r"  rank 1, pid \d+: silent for 2\.\d s, its last words: \"step 7\"; "
                                 r"sleeps \(S\).*\n  rank 0, pid \d+: silent for 0\.\d s, its last "
                                 r"words: \"step \d+\"; ")

    def test_from_its_start_a_rank_that_never_beats_is_named(self):
        report = self.hang(f"[ $RANK = 0 ] && exec sleep 1000; {BEAT}", 2 + 5, "--beat-from-start")
        self.assertIn("it never wrote to its beat file (SCALETRAIN_BEAT_FILE)", report)
        self.assertTrue(report.startswith(f"rank 0 on host {HOST} does not beat"), report)

    def test_a_program_that_never_beats_is_not_watched_and_a_line_says_so(self):
        done = self.run_launcher("launch", "--nproc", 2, "--hang-timeout", "200ms", "--", "sleep", "1")
        self.assertEqual(
            "--hang-timeout: no worker has beaten for 0.2 s, and one is watched from its first beat on\n"
            "  it beats by writing to the file that SCALETRAIN_BEAT_FILE names; --beat-from-start "
            "watches it from its start\n", done.stderr)

    def test_a_rank_that_never_beats_is_left_alone_beside_one_that_does(self):
        script = "[ $RANK = 0 ] && exec sleep 2; for i in 1 2 3 4; do echo $i >$SCALETRAIN_BEAT_FILE; sleep 0.3; done"
        done = self.run_launcher("launch", "--nproc", 2, "--hang-timeout", "1s", "--", "sh", "-c", script)
        self.assertEqual("", done.stderr)

    def test_a_rank_that_was_stopped_is_named_and_goes(self):
        script = f"[ $RANK = 1 ] && echo 1 >$SCALETRAIN_BEAT_FILE && kill -STOP $$; {BEAT}"
        self.assertRegex(self.hang(script, 2 + 5),
                         rf"^rank 1 on host {HOST} does not beat .*\n.*stopped by a signal \(T\)")

    def test_a_hang_is_worth_a_restart(self):
        script = f"[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; [ $RANK = 1 ] && exec sleep 1000; {BEAT}"
        done = self.run_launcher("launch", "--nproc", 2, "--hang-timeout", "500ms",
                                 "--beat-from-start", "--max-restarts", 1, "--", "sh", "-c", script)
        self.assertIn("starting again: restart 1 of 1", done.stderr)

    def test_a_launcher_that_was_stopped_itself_blames_nobody(self):
        process = self.start("launch", "--nproc", 2, "--hang-timeout", "500ms", "--", "sh", "-c",
                             f"{BEAT.replace('while :', 'while [ ! -e go ]')}")
        self.wait_for_files("ready0", "ready1")
        workers = [pid for pid in self.left() if pid != process.pid]
        for pid in (process.pid, *workers):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(3)
        for pid in (process.pid, *workers):
            os.kill(pid, signal.SIGCONT)
        time.sleep(1)
        (self.folder / "go").touch()
        self.assertEqual(0, process.wait(LIMIT_S), process.stderr.read())

    def test_without_the_flag_nothing_is_watched_and_no_variable_is_set(self):
        done = self.run_launcher("launch", "--", "sh", "-c",
                                 "echo ${SCALETRAIN_BEAT_FILE-unset}; sleep 1.2")
        self.assertEqual("unset\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
