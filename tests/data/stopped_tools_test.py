"""Commands of `scaletrain data` that write, and are stopped or fail: nothing of them is left."""
import glob
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest

from tools_support import PROGRAM, FolderTest, class_folders, data, picture

WAIT_S = 60
STOPS = ((signal.SIGINT, 130), (signal.SIGTERM, 75))


class Stopped(FolderTest):
    def stop(self, command, out, begun, number):
        """Exit code and messages of a command that is stopped when it has a file like `begun`."""
        process = subprocess.Popen([PROGRAM, "data", *map(str, command)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + WAIT_S
        while not glob.glob(os.path.join(out, begun)):
            self.assertIsNone(process.poll(), "it has ended already")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        process.send_signal(number)
        started = time.monotonic()
        text = process.communicate(timeout=WAIT_S)[1]
        self.assertLess(time.monotonic() - started, 20)
        return process.returncode, text

    def check(self, *command, begun=".train-000000.tar.tmp.*", out="new/deeper/out"):
        """`command`, in which OUT stands for the folder, leaves nothing when it is stopped."""
        for number, status in STOPS:
            for made in (False, True):
                folder = self.path(out)
                if made:
                    os.makedirs(folder)
                with self.subTest(command=command[0], signal=number, made=made):
                    arguments = [folder if part == "OUT" else part for part in command]
                    self.assertEqual((status, f"stopped: nothing was written to {folder}\n"),
                                     self.stop(arguments, folder, begun, number))
                    if made:  # by another: it stays
                        self.assertEqual([], os.listdir(folder))
                        os.removedirs(folder)
                        os.makedirs(self.folder, exist_ok=True)
                    self.assertFalse(os.path.exists(self.path(out.split("/")[0])))

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="data_tools_")
        cls.addClassCleanup(folder.cleanup)
        cls.shards = os.path.join(folder.name, "set")
        data("synth", cls.shards, "--samples", 60_000, "--size", 16, "--encoding", "raw")

    def test_synth(self):
        self.check("synth", "OUT", "--samples", 1 << 40)

    def test_pack(self):
        self.write("a.png", picture(1, 1500, 1500, "PNG"))
        self.write("list.csv", "path,label\n" + "a.png,x\n" * 3000)
        self.check("pack", self.path("list.csv"), "OUT", "--reencode", "png")

    def test_import(self):
        self.check("import", "tar", *glob.glob(f"{self.shards}/*.tar"), "--out", "OUT")

    def test_split_and_dedup(self):
        self.check("split", self.shards, "--out", "OUT")
        self.check("dedup", self.shards, "--out", "OUT")

    def test_tokenize(self):
        line = json.dumps({"text": "a document " * 200}) + "\n"
        self.write("texts.jsonl", line * 60_000)
        self.check("tokenize", self.path("texts.jsonl"), "--out", "OUT", "--tokens-per-file", 4000,
                   begun=".train-000000.bin.tmp.*")

    def test_older_shards_stay(self):
        data("synth", self.path("out"), "--samples", 5)
        before = sorted(os.listdir(self.path("out")))
        for number, status in STOPS:
            command = ["synth", self.path("out"), "--samples", 1 << 40, "--overwrite"]
            self.assertEqual(status, self.stop(command, self.path("out"),
                                               ".train-000000.tar.tmp.*", number)[0])
            self.assertEqual(before, sorted(os.listdir(self.path("out"))))


class Failed(FolderTest):
    def test_folders_that_were_made_go_again(self):
        class_folders(self.path("in"))
        self.write("in/emu/bad.jpg", "no picture")
        self.write("bad.jsonl", '{"text": 1}\n')
        for command in (["pack", self.path("in")],
                        ["pack", self.path("in"), "--resize", 16, "--samples-per-shard", 3],
                        ["import", "tar", self.path("in", "emu", "bad.jpg"), "--out"],
                        ["tokenize", self.path("bad.jsonl"), "--out"]):
            out = self.path("new/out")
            arguments = [*command[:2], out, *command[2:]] if command[0] == "pack" else [*command, out]
            with self.subTest(command=arguments):
                data(*arguments, code=65)
                self.assertFalse(os.path.exists(self.path("new")))
                os.makedirs(out)
                data(*arguments, code=65)
                self.assertEqual([], os.listdir(out))
                os.removedirs(out)
                os.makedirs(self.folder, exist_ok=True)

    def test_a_full_disk(self):
        shell = 'ulimit -f 64; trap "" XFSZ; exec "$0" data synth "$1" --samples 5000'
        done = subprocess.run(["bash", "-c", shell, PROGRAM, self.path("new", "out")], timeout=60,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(74, done.returncode, done.stderr)
        self.assertIn("File too large (EFBIG: the limit of file sizes is ulimit -f)", done.stderr)
        self.assertFalse(os.path.exists(self.path("new")))


if __name__ == "__main__":
    unittest.main()
