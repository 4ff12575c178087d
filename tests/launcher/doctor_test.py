"""scaletrain doctor: what is well, and that it fails where a fault is put in its way."""

import json
import os
import shutil
import subprocess
import unittest

from launcher.launch_support import BIN, LIMIT_S, SCALETRAIN, LaunchTestCase


def can_mount():
    """Whether this process may make a mount namespace of its own."""
    return subprocess.run(["unshare", "--mount", "--uts", "true"], capture_output=True).returncode == 0


class Doctor(LaunchTestCase):
    def findings(self, *arguments, command=(), expect=None, env=None):
        """{name: finding}; the exit status must fit what failed."""
        done = subprocess.run([*command, SCALETRAIN, "doctor", "--json", *arguments],
                              capture_output=True, text=True, timeout=3 * LIMIT_S, cwd=self.folder,
                              env=self.environment(env))
        result = json.loads(done.stdout)
        failed = [finding for finding in result["findings"] if finding["state"] == "failed"]
        self.assertEqual((not failed, 1 if failed else 0), (result["ok"], done.returncode))
        if expect is not None:
            self.assertEqual(expect, done.returncode, failed)
        self.assert_nothing_left()
        for finding in result["findings"]:
            self.assertEqual(finding["state"] == "ok", finding["remedy"] == "", finding)
        return {finding["name"]: finding for finding in result["findings"]}

    def in_namespace(self, script, *arguments):
        return ["unshare", "--mount", "--uts", "sh", "-c", script + '; exec "$@"', "sh", *arguments]

    def test_this_machine(self):
        found = self.findings("--output", self.folder / "runs")
        self.assertLessEqual({"load", "CPUs", "GPUs", "loopback", "port 29500", "localhost", "host name",
                              "disk", "disk's links", "disk space", "open files", "processes", "locked memory",
                              "shared memory", "clock"}, set(found))
        for name in ("CPUs", "loopback", "localhost", "disk", "disk's links"):
            self.assertEqual("ok", found[name]["state"], found[name])
        self.assertEqual([], list(self.folder.iterdir()))

    @unittest.skipUnless(shutil.which("strace"), "needs strace to refuse links")
    def test_a_file_system_without_links(self):
        found = self.findings("--output", self.folder, command=[
            "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=symlink,symlinkat,link,linkat",
            "-e", "inject=symlink,symlinkat,link,linkat:error=EOPNOTSUPP"])["disk's links"]
        self.assertEqual("warning", found["state"])
        self.assertEqual("no symbolic links: Operation not supported (EOPNOTSUPP); no hard links: "
                         "Operation not supported (EOPNOTSUPP)", found["found"])
        self.assertRegex(found["remedy"], "files that hold the name.*O_EXCL")
        self.assertEqual([], list(self.folder.iterdir()))

    @unittest.skipUnless((BIN / "scaletrain-worker").exists(), "the worker is not built")
    def test_workers_start_and_talk(self):
        found = self.findings()
        self.assertEqual("ok", found["LibTorch"]["state"], found["LibTorch"])
        self.assertRegex(found["LibTorch"]["found"], r"^\d+\.\d+\.\d+, starts in ")
        self.assertEqual("ok", found["Gloo all-reduce"]["state"], found["Gloo all-reduce"])
        self.assertRegex(found["Gloo all-reduce"]["found"], r"^2 ranks: connected in ")

    def test_a_worker_that_is_missing(self):
        shutil.copy(SCALETRAIN, self.folder / "scaletrain")
        done = subprocess.run([self.folder / "scaletrain", "doctor"], capture_output=True, text=True,
                              timeout=LIMIT_S, cwd=self.folder, env=self.environment())
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stdout, r"(?m)^failed +LibTorch +.*scaletrain-worker: cannot be "
                                      r"executed.*\n +-> build it: ninja")

    @unittest.skipUnless(can_mount(), "no mount namespace for this user")
    def test_a_host_name_that_does_not_resolve(self):
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n")
        (self.folder / "empty").touch()
        faults = (f"mount --bind {self.folder}/hosts /etc/hosts;"
                  f"mount --bind {self.folder}/empty /etc/resolv.conf; hostname no-such-host")
        found = self.findings(command=self.in_namespace(faults), expect=1)
        self.assertEqual("failed", found["host name"]["state"])
        self.assertIn('"no-such-host" does not resolve', found["host name"]["found"])
        self.assertEqual("ok", found["localhost"]["state"])

    @unittest.skipUnless(can_mount(), "no mount namespace for this user")
    def test_a_full_disk(self):
        (self.folder / "small").mkdir()
        mount = f"mount -t tmpfs -o size=1m none {self.folder}/small"
        found = self.findings("--output", self.folder / "small",
                              command=self.in_namespace(mount), expect=1)
        self.assertIn("ENOSPC", found["disk"]["found"])

    def test_low_limits(self):
        found = self.findings(command=["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"], expect=1)
        self.assertEqual("64 (hard limit 64)", found["open files"]["found"])
        self.assertEqual("failed", found["open files"]["state"])

    def test_a_driver_with_gpus_and_one_that_refuses(self):
        library = BIN.parent / "fake_nvml"
        if not library.exists():
            self.skipTest("the library of the tests is not built")
        path = f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        found = self.findings(env={"LD_LIBRARY_PATH": path})
        self.assertEqual("4 x Fake, 1 GiB", found["GPUs"]["found"])
        self.assertEqual("580.00, CUDA up to 13.0", found["driver"]["found"])
        found = self.findings(env={"LD_LIBRARY_PATH": path, "CUDA_VISIBLE_DEVICES": "0,7"}, expect=1)
        self.assertEqual("CUDA_VISIBLE_DEVICES names 2 devices, of which 1 is found", found["GPUs"]["found"])


if __name__ == "__main__":
    unittest.main()
