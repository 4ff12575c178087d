"""The power fails while checkpoints are written: a file system of its own that forgets at once what
the disk has not."""

import ctypes
import fcntl
import os
import random
import struct
import subprocess
import time
import unittest

from end_to_end import support

EXT4_IOC_SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2  # nothing more reaches the disk, the journal neither
CLONE_NEWNS = 0x20000
CUTS, CUTS_OF_LINKS = (40, 40) if support.LONG else (4, 2)


class Disk:
    """An ext4 in a file, mounted at a folder."""

    def __init__(self, folder):
        self.image, self.mount_point = folder / "disk", folder / "mounted"
        self.mount_point.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(1 << 30)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True, capture_output=True)

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.image, self.mount_point], check=True,
                       capture_output=True, text=True)

    def cut_power(self):
        folder = os.open(self.mount_point, os.O_RDONLY)
        fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        os.close(folder)

    def unmount(self):
        command = ["umount", self.mount_point]
        support.wait_until(lambda: not subprocess.run(command, capture_output=True).returncode,
                           "that nobody uses the disk")


class PowerCutTest(support.RunTestCase):
    @classmethod
    def setUpClass(cls):
        """Mounts of this process's own: a mount namespace that another test makes meanwhile would
        hold a copy of them, and a disk that is still mounted somewhere stays without power."""
        cls.may_mount = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
        if cls.may_mount:
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)

    def setUp(self):
        super().setUp()
        if not self.may_mount:
            self.skipTest("only root can mount a file system")
        self.disk = Disk(self.folder)
        try:
            self.disk.mount()
        except subprocess.CalledProcessError as error:
            self.skipTest(f"no file can be mounted here: {error.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk.mount_point],
                        capture_output=True)

    def test_checkpoints_that_were_reported_as_saved_survive(self):
        self.cut_again_and_again(CUTS)

    def test_incremental_checkpoints_survive_too(self):
        self.cut_again_and_again(CUTS_OF_LINKS, model={"freeze": "fc1.*"},
                                 checkpoint={"incremental": True})

    def cut_again_and_again(self, cuts, model=None, checkpoint=None):
        # 18 MB of weights: files that are written past the page cache.
        run = self.disk.mount_point / "run"
        path = self.recipe(
            "run", output=str(run), steps=100000, validate={"every": {"steps": 90000}},
            model={"name": "mlp", "num_classes": 10, "hidden": 6000, "layers": 1, **(model or {})},
            checkpoint={"every": {"steps": 2}, "keep_last": 1, "keep_best": 0,
                        **(checkpoint or {})})
        seed = random.randrange(1 << 30)
        print(f"moments drawn with seed {seed}")
        moments = random.Random(seed)
        in_the_middle = 0
        for number in range(cuts):
            process = self.start("launch", "--nproc", 1, "--resume", "auto", path)
            before = support.newest_saved(run) + (4 if checkpoint else 0)  # the third one links
            support.wait_until(lambda: support.newest_saved(run) > before, "a checkpoint")
            if number % 2 == 1:  # else at once: just behind the report
                time.sleep(moments.uniform(0, 0.3))
            in_the_middle += any((run / "checkpoints").glob("*.tmp.*"))
            saved = support.newest_saved(run)
            self.disk.cut_power()
            self._end(process)
            self.disk.unmount()
            self.disk.mount()
            found = support.inspect(run)
            self.assertGreaterEqual(found["step"], saved, f"cut {number}")
        print(f"{cuts} cuts, {in_the_middle} of them while a checkpoint was written")
        done = self.run_scaletrain("launch", "--nproc", 1, "--resume", "auto", path, "--allow",
                                   "steps", "--set", f"steps={found['step'] + 3}")
        self.assertIn("saved", done.stderr)


if __name__ == "__main__":
    unittest.main()
