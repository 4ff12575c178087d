"""Several commands write shards into one folder at once: a label means one class there."""
import glob
import os
import signal
import subprocess
import tarfile
import time
import unittest

from tools_support import PROGRAM, FolderTest, class_folders, data, picture, read_json

CLASSES = [f"c{i}" for i in range(5)]
SOME = ["c1", "c3"]
WAIT_S = 60


def start(*arguments):
    return subprocess.Popen([PROGRAM, "data", *map(str, arguments)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def wait_for(pattern):
    """Until a file is there."""
    end = time.monotonic() + WAIT_S
    while not glob.glob(pattern, include_hidden=True):
        assert time.monotonic() < end, pattern
        time.sleep(0.01)


class Together(FolderTest):
    def setUp(self):
        super().setUp()
        class_folders(self.path("all"), CLASSES, each=4)
        class_folders(self.path("some"), SOME, each=2)
        self.out = self.path("out")

    def long_list(self, classes, lines=40_000):
        """A list that is packed for a second or so."""
        for name in classes:
            self.write(f"long/{name}.jpg", picture(len(name)))
        return self.write("long/list.csv", "path,label\n" + "".join(
            f"{classes[i % len(classes)]}.jpg,{classes[i % len(classes)]}\n"
            for i in range(lines)))

    def started(self, *command):
        """A command that has begun to write a shard, and stands still."""
        process = start(*command)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for(os.path.join(self.out, ".train-000000.tar.tmp.*"))
        process.send_signal(signal.SIGSTOP)
        return process

    def ended(self, process):
        process.send_signal(signal.SIGCONT)
        return process.wait(WAIT_S), process.stderr.read()

    def check_labels(self):
        """Each sample's label is the class that its key, CLASS/NAME, begins with."""
        classes = read_json(os.path.join(self.out, "classes.json"))
        for shard in glob.glob(os.path.join(self.out, "*.tar")):
            with tarfile.open(shard) as tar:
                for name in tar.getnames():
                    if name.endswith(".cls"):
                        label = int(tar.extractfile(name).read())
                        self.assertEqual(name.split("/")[0], classes[label], (shard, name))

    def test_two_at_once_agree_or_one_ends(self):
        for _ in range(12):
            one = start("pack", self.path("some"), self.out, "--name", "val")
            two = start("pack", self.path("all"), self.out)
            codes = []
            for process in (one, two):
                text = process.communicate(timeout=WAIT_S)[1]
                codes.append(process.returncode)
                if process.returncode != 0:
                    self.assertRegex(text, "other classes|is not in classes.json")
            self.assertIn(codes, ([0, 0], [0, 65], [65, 0]))
            self.check_labels()
            self.assertEqual(2 - codes.count(65), len(glob.glob(self.path("out", "*.tar"))))
            self.assertEqual([], glob.glob(self.path("out", ".*"), include_hidden=True))
            subprocess.run(["rm", "-r", self.out], check=True)

    def test_other_classes_are_refused_while_a_command_writes(self):
        for first in (["pack", self.long_list(CLASSES), self.out],
                      ["synth", self.out, "--samples", 100_000, "--classes", 3, "--size", 16]):
            process = self.started(*first)
            for second in (["pack", self.path("some"), self.out, "--name", "val"],
                           ["synth", self.out, "--name", "val", "--samples", 5, "--classes", 2]):
                self.assertEqual(
                    f"{self.out}: process {process.pid} is writing shards with other classes there\n"
                    "  all shards of a folder must have the same classes: choose another folder, or give both "
                    "commands the same list with --classes\n", data(*second, code=65))
            self.assertEqual([], glob.glob(self.path("out", "*")))  # the loser left nothing
            process.kill()
            process.wait()
            # What a command that was killed has claimed counts no longer.
            data("pack", self.path("some"), self.out, "--name", "val")
            self.assertEqual(SOME, read_json(self.path("out", "classes.json")))
            subprocess.run(["rm", "-r", self.out], check=True)

    def test_two_commands_with_the_same_classes_share_a_folder(self):
        process = self.started("pack", self.long_list(CLASSES), self.out)
        data("pack", self.path("all"), self.out, "--name", "val")
        classes = self.write("classes.json", str(CLASSES).replace("'", '"'))
        data("pack", self.path("some"), self.out, "--name", "test", "--classes", classes)
        self.assertEqual((0, ""), self.ended(process))
        self.assertEqual(CLASSES, read_json(self.path("out", "classes.json")))
        self.assertEqual(["test-000000.tar", "train-000000.tar", "val-000000.tar"],
                         sorted(map(os.path.basename, glob.glob(self.path("out", "*.tar")))))
        self.assertEqual([], glob.glob(self.path("out", ".*"), include_hidden=True))

    def test_the_second_command_with_other_classes_leaves_nothing(self):
        # A command of another machine is not seen: its claim is of no process here.
        process = self.started("pack", self.long_list(CLASSES), self.out)
        for claim in glob.glob(self.path("out", ".classes.json.*"), include_hidden=True):
            os.remove(claim)
        data("pack", self.path("some"), self.out, "--name", "val")
        before = sorted(os.listdir(self.out))
        status, text = self.ended(process)
        self.assertEqual(65, status)
        self.assertIn("out/classes.json: has other classes than the new shards\n", text)
        self.assertEqual(["classes.json", "val-000000.tar", "val-000000.tar.idx"],
                         sorted(os.listdir(self.out)))
        self.assertLess(set(os.listdir(self.out)), set(before))  # the others were the loser's
        self.check_labels()

    def test_the_first_of_two_commands_with_one_name_stays(self):
        process = self.started("pack", self.long_list(CLASSES), self.out)
        data("pack", self.path("all"), self.out)
        status, text = self.ended(process)
        self.assertEqual(2, status)
        self.assertIn("out/train-000000.tar: exists already", text)
        self.check_labels()


if __name__ == "__main__":
    unittest.main()
