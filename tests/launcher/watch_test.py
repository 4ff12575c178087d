"""scaletrain watch RUN: a screen of curves on a terminal, plain text elsewhere."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import LIMIT_S, SCALETRAIN


class Watch(RecipeTestCase):
    def setUp(self):
        super().setUp()
        self.run_folder.mkdir(parents=True, exist_ok=True)
        (self.run_folder / "recipe.json").write_text('{"name": "test"}')
        self.write(100)

    def write(self, steps):
        lines = []
        for step in range(1, steps + 1):
            lines.append(json.dumps({"event": "train", "attempt": 0, "step": step, "epoch": 0,
                                     "loss": 1 / step, "lr": 0.1, "samples_per_s": 100.0,
                                     "time": 1000.0 + step}))
            lines.append(json.dumps({"event": "ledger", "attempt": 0, "step": step, "rank": 0,
                                     "seconds": {"data_wait": 0.25, "backward": 0.75}, "time": 1000.0 + step}))
        lines.append(json.dumps({"event": "eval", "attempt": 0, "split": "val", "step": steps,
                                 "epoch": 0, "top1": 0.5, "loss": 1.0, "count": 20}))
        (self.run_folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")

    def watch(self, *flags, run=None, expect=0):
        done = subprocess.run([SCALETRAIN, "watch", run or self.run_folder, *flags], text=True,
                              capture_output=True, timeout=LIMIT_S, env=self.environment())
        self.assertEqual(expect, done.returncode, done.stderr)
        return done.stdout if expect == 0 else done.stderr

    def test_without_a_terminal_it_prints_one_screen_without_escapes(self):
        text = self.watch()
        self.assertTrue(text.startswith("test   stopped 1m 39s   step 100\n"), text)
        self.assertIn("val top-1  50.00 %\n", text)
        self.assertRegex(text, "data wait +25 %")
        self.assertNotIn("\x1b", text)

    def test_no_line_is_wider_than_asked(self):
        for width in (60, 100):
            lines = self.watch("--once", "--width", str(width)).splitlines()
            self.assertLessEqual(max(map(len, lines)), width)

    def test_ten_thousand_steps_are_drawn(self):
        self.write(10000)
        self.assertIn("step 10000", self.watch("--once", "--width", "100"))

    def test_a_folder_that_is_not_a_run_is_refused(self):
        self.assertEqual(f"{self.folder}: holds no run\n  name the output folder of a recipe\n",
                         self.watch(run=self.folder, expect=2))

    def read_until(self, fd, part):
        text, end = "", time.monotonic() + LIMIT_S
        while part not in text and time.monotonic() < end:
            if select.select([fd], [], [], 0.2)[0]:
                text += os.read(fd, 65536).decode(errors="replace")
        self.assertIn(part, text)
        return text

    def test_on_a_terminal_it_redraws_on_resize_and_restores_the_screen(self):
        for leave in ("q", signal.SIGINT):
            master, slave = pty.openpty()
            self.addCleanup(os.close, master)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
            before = termios.tcgetattr(slave)
            process = subprocess.Popen([SCALETRAIN, "watch", self.run_folder], stdin=slave,
                                       stdout=slave, env=self.environment())
            self.addCleanup(process.kill)
            wide = self.read_until(master, "\x1b[J")
            self.assertTrue(wide.startswith("\x1b[?1049h\x1b[?25l"), wide)
            self.assertIn("q quit  s smooth  l log scale  1-5 panels", wide)
            os.write(master, b"s")
            self.read_until(master, "loss  0.01  smoothed")
            os.write(master, b"s1")
            self.read_until(master, "panels\x1b[K\r\r\nlr ")  # without the curves
            os.write(master, b"1")
            self.assertIn("val top-1  50.00 %", wide.split("\n")[1])  # beside the loss
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 60, 0, 0))
            process.send_signal(signal.SIGWINCH)
            self.read_until(master, "loss  0.01\x1b[K")  # alone on its line
            if leave == "q":
                os.write(master, b"q")
            else:
                process.send_signal(leave)
            self.read_until(master, "\x1b[?25h\x1b[?1049l")
            self.assertEqual(0, process.wait(LIMIT_S))
            self.assertEqual(before, termios.tcgetattr(slave))
            os.close(slave)


if __name__ == "__main__":
    unittest.main()
