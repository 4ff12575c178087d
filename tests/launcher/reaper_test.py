"""A launcher that is killed: what its workers have started ends with it, however it left them."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase

CYCLES = 500 if os.environ.get("SCALETRAIN_LONG") == "1" else 12
# Without a mount of cgroups none is had.
HIDE_CGROUPS = ["unshare", "-m", "sh", "-c", "umount -a -t cgroup2 && exec \"$@\"", "sh"]
STAY = "exec sleep 1000"


def own_cgroup():
    """The folder of this process's cgroup (v2), where one can be made in it, else None."""
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    unified = [words[1] for words in mounts if words[2] == "cgroup2"]
    own = [line[3:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
           if line.startswith("0::")]
    if not unified or not own or "SLURM_JOB_ID" in os.environ:
        return None
    folder = pathlib.Path(unified[0] + own[0])
    try:
        (folder / "scaletrain-test").mkdir()
        (folder / "scaletrain-test").rmdir()
    except OSError:
        return None
    return folder


CGROUP = own_cgroup()


def reaper_of(launcher):
    """The reaper's process number, once the process has its name."""
    while True:
        children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        for pid in children:
            if pathlib.Path(f"/proc/{pid}/comm").read_text() == "job-reaper\n":
                return int(pid)
        time.sleep(0.01)


class KeeperTestCase(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.launched = []
        # Those of jobs whose reaper was killed too may have a number that comes again.
        self.before = set(CGROUP.glob("scaletrain-*")) if CGROUP else set()

    def tearDown(self):
        for pid in self.launched if CGROUP else []:
            self.assertEqual(set(), set(CGROUP.glob(f"scaletrain-{pid}-*")) - self.before)

    def launch(self, script, *flags, prefix=()):
        process = subprocess.Popen(
            [*prefix, SCALETRAIN, "launch", *flags, "--", "bash", "-c", script], cwd=self.folder,
            env=self.environment(), stdin=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.launched.append(process.pid)
        return process


class KilledLauncher(KeeperTestCase):
    # A child, a child in a process group of its own, a grandchild whose parent has ended.
    CHILDREN = (f"(touch a$RANK; {STAY}) & set -m; (touch b$RANK; {STAY}) & set +m;"
                f"( (touch c$RANK; {STAY}) & ); ")
    DAEMON = f"setsid sh -c 'touch d$RANK; {STAY}' & "

    def check(self, script, letters, prefix=()):
        for number in range(CYCLES):
            process = self.launch(script + "wait", "--nproc", "2", prefix=prefix)
            names = [f"{letter}{rank}" for letter in letters for rank in (0, 1)]
            self.wait_for_files(*names)
            # Once its whole process group, as a shell or a terminal may do.
            kill = os.killpg if number % 2 else os.kill
            kill(process.pid, signal.SIGKILL)
            self.assertEqual(-signal.SIGKILL, process.wait(LIMIT_S))
            self.assert_nothing_left()
            for name in names:
                (self.folder / name).unlink()

    @unittest.skipUnless(CGROUP, "no cgroup can be made here: not root, nor was one delegated")
    def test_all_of_its_cgroup_ends(self):
        self.check(self.CHILDREN + self.DAEMON, "abcd")

    def test_without_a_cgroup_the_sessions_of_workers_end(self):
        if CGROUP and os.geteuid() != 0:
            self.skipTest("cgroups can be hidden by root only")
        self.check(self.CHILDREN, "abc", HIDE_CGROUPS if CGROUP else ())

    def test_at_any_moment(self):
        for prefix in ([], HIDE_CGROUPS) if CGROUP and os.geteuid() == 0 else ([],):
            for number in range(CYCLES):
                process = self.launch(self.CHILDREN + "wait", "--nproc", "2", prefix=prefix)
                try:
                    process.wait(0.002 * (number % 25))
                except subprocess.TimeoutExpired:
                    pass
                process.kill()
                process.wait(LIMIT_S)
                self.assert_nothing_left()

    def test_its_restarts_too(self):
        script = (f"setsid sh -c '{STAY}' & [ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 1;"
                  f"touch ready; {STAY}")
        process = self.launch(script, "--max-restarts", "2", "--restart-delay", "0s")
        self.wait_for_files("ready")
        process.kill()
        process.wait(LIMIT_S)
        if CGROUP:
            self.assert_nothing_left()


class OrderlyEnd(KeeperTestCase):
    def test_processes_that_left_the_workers_group_survive(self):
        script = f"setsid sh -c 'touch ready; {STAY}' & while [ ! -e ready ]; do sleep 0.01; done"
        for ending in ("exit 0", "exit 3"):
            (self.folder / "ready").unlink(missing_ok=True)
            process = self.launch(f"{script}; {ending}")
            self.assertEqual(1 if ending == "exit 3" else 0, process.wait(LIMIT_S))
            daemon, = self.left()
            own = [pathlib.Path(f"/proc/{who}/cgroup").read_text() for who in ("self", daemon)]
            self.assertEqual(own[0], own[1])
            os.kill(daemon, signal.SIGKILL)
            self.assert_nothing_left()

    def test_a_job_without_its_reaper_goes_on(self):
        script = "touch ready; while [ ! -e go ]; do sleep 0.01; done"
        process = self.launch(script, "--nproc", "2")
        self.wait_for_files("ready")
        reaper = reaper_of(process.pid)
        for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(reaper, ignored)
        os.kill(reaper, signal.SIGKILL)
        (self.folder / "go").touch()
        self.assertEqual(0, process.wait(LIMIT_S))
        self.assert_nothing_left()

    def test_it_holds_no_stream_of_the_launcher(self):
        done = subprocess.run([SCALETRAIN, "launch", "--", "true"], capture_output=True,
                              env=self.environment(), timeout=LIMIT_S, check=True)
        self.assertEqual(b"", done.stdout + done.stderr)
        self.assertEqual([], self.left())


if __name__ == "__main__":
    unittest.main()
