"""The launcher under limits of descriptors, processes and memory: an error that names them, no hang,
nothing left."""

import shutil
import subprocess
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase


class Limits(LaunchTestCase):
    def under(self, shell, *prefix):
        """`launch` of four workers under what `shell` sets; its exit status and standard error."""
        done = subprocess.run(
            ["sh", "-c", f"{shell} exec \"$@\"", "sh", *prefix, SCALETRAIN, "launch", "--nproc", "4",
             "--", "sleep", "0.2"], cwd=self.folder, env=self.environment(), text=True,
            capture_output=True, timeout=LIMIT_S, check=False)
        self.assert_nothing_left()
        return done.returncode, done.stderr

    def test_descriptors(self):
        statuses = set()
        for limit in (4, 6, 8, 10, 14, 18, 24, 64):
            status, err = self.under(f"ulimit -n {limit};")
            statuses.add(status)
            if status != 0:
                self.assertEqual(71, status, err)
                self.assertIn("Too many open files (EMFILE)", err, limit)
        self.assertEqual({0, 71}, statuses)  # 64 are enough

    @unittest.skipUnless(shutil.which("strace"), "needs strace to refuse processes")
    def test_processes(self):
        for when in (1, 3):
            status, err = self.under(
                "", "strace", "-o", "/dev/null", "-e", "trace=clone,clone3,fork,vfork", "-e",
                f"inject=clone,clone3,fork,vfork:error=EAGAIN:when={when}+")
            self.assertEqual(71, status, err)
            self.assertIn("cannot start a process: Resource temporarily unavailable (EAGAIN)\n"
                          "  raise the limits of processes (ulimit -u) or of memory\n", err)

    def test_memory(self):
        statuses = set()
        for megabytes in (10, 11, 12, 16, 24, 40):  # in 8 the kernel cannot map the program
            status, err = self.under(f"ulimit -v {1024 * megabytes};")
            statuses.add(status)
            # 127: the program could not even be loaded; -6: loaded, without room for an exception.
            self.assertIn(status, (0, 71, 127, -6), err)
            if status == 71:
                self.assertRegex(err, "memory", megabytes)
        self.assertIn(0, statuses)


if __name__ == "__main__":
    unittest.main()
