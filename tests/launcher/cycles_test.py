"""Started and stopped again and again, the launcher leaves nothing behind: no process, port, file,
shared memory or descriptor."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S, LaunchTestCase

CYCLES = 500 if os.environ.get("SCALETRAIN_LONG") == "1" else 20
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000


def isolate():
    """Ports and shared memory of this process's own, so that nobody else's are counted."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    return True


def listening():
    """The listening TCP ports of this network namespace."""
    ports = []
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]:
            if line.split()[3] == "0A":
                ports.append(line.split()[1])
    return ports


class Cycles(LaunchTestCase):
    @classmethod
    def setUpClass(cls):
        cls.isolated = isolate()

    def cycle(self, number):
        """One start and stop: done, failed, stopped, or killed with SIGKILL."""
        script = ("echo x >$TEST_OUT$RANK; case $TEST_HOW in done) exit 0;;"
                  "failed) until [ -e ${TEST_OUT}0 ]; do :; done; exit $RANK;; esac; exec sleep 1000")
        how = ("done", "failed", "stopped", "killed")[number % 4]
        out = self.folder / f"out{number}-"
        process = self.start("launch", "--nproc", 2, "--", "sh", "-c", script,
                             env={"TEST_HOW": how, "TEST_OUT": str(out)})
        self.wait_for_files(f"{out.name}0", f"{out.name}1")
        if how == "stopped":
            process.terminate()
        if how == "killed":
            process.send_signal(signal.SIGKILL)
        status = process.wait(LIMIT_S)
        self.assertEqual({"done": 0, "failed": 1, "stopped": 1, "killed": -9}[how], status)
        for stream in (process.stdout, process.stderr):
            stream.close()
        for rank in (0, 1):
            pathlib.Path(f"{out}{rank}").unlink()
        return how

    def test_nothing_is_left_behind(self):
        descriptors = len(os.listdir("/proc/self/fd"))
        for number in range(CYCLES):
            how = self.cycle(number)
            self.assert_nothing_left()
            # Who is killed cannot remove its temporary folder.
            left = [path for path in self.folder.iterdir() if path.is_dir()]
            self.assertEqual(how == "killed", bool(left), left)
            for path in left:
                subprocess.run(["rm", "-r", path], check=True)
        self.assertEqual([], list(self.folder.iterdir()))
        self.assertEqual(descriptors, len(os.listdir("/proc/self/fd")))
        if not self.isolated:
            self.skipTest("without root, ports and shared memory are not looked at")
        self.assertEqual([], listening())
        self.assertEqual([], os.listdir("/dev/shm"))

    def test_the_store_leaves_nothing_behind(self):
        script = ("import os,socket; socket.create_connection((os.environ['MASTER_ADDR'],"
                  "int(os.environ['MASTER_PORT'])))")
        for _ in range(2):
            self.run_launcher("launch", "--nproc", 2, "--", sys.executable, "-c", script)
        self.assertEqual([], list(self.folder.iterdir()))
        if self.isolated:
            self.assertEqual(([], []), (listening(), os.listdir("/dev/shm")))


class Attempts(RecipeTestCase):
    """One launcher that starts its workers again and again keeps no descriptor of an attempt."""

    def check(self, *arguments):
        self.run_launcher(*arguments)
        counts = [int(count) for count in (self.folder / "counts").read_text().split()]
        self.assertEqual(CYCLES, len(counts))
        # Some of a start are still open when its worker counts; one an attempt would be CYCLES.
        self.assertLess(max(counts) - min(counts), max(10, CYCLES // 5))

    COUNT = "ls /proc/$PPID/fd | wc -l >>\"$TEST_FOLDER/counts\""

    def test_attempts_of_a_program_leave_nothing_behind(self):
        script = f"{self.COUNT}; [ $TORCHELASTIC_RESTART_COUNT = {CYCLES - 1} ]"
        self.check("launch", "--hang-timeout", "10s", "--max-restarts", CYCLES, "--restart-delay", "0s",
                   "--", "sh", "-c", script)

    def test_attempts_of_a_recipe_leave_nothing_behind(self):
        self.script(f"{self.COUNT}; [ $TORCHELASTIC_RESTART_COUNT = {CYCLES - 1} ] || exit 74\n")
        self.check("launch", "--worker", self.worker, "--max-restarts", CYCLES, "--restart-delay", "0s",
                   self.recipe())


if __name__ == "__main__":
    unittest.main()
