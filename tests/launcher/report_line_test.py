"""The report begins a line, whatever a program left on the last one."""

import fcntl
import os
import struct
import subprocess
import termios
import unittest

from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase

COLUMNS = 30


def lines_of(shown):
    """The lines of a terminal of COLUMNS columns that was shown `shown`, as xterm draws them: the
    cursor stays in the last column until the next character needs a place."""
    lines, column = [""], 0
    for character in shown:
        if character == "\r":
            column = 0
        elif character == "\n":
            lines, column = lines + [""], 0
        else:
            if column == COLUMNS:
                lines, column = lines + [""], 0
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1:]
            column += 1
    return [line.rstrip() for line in lines]


class ReportLine(LaunchTestCase):
    def launch(self, nproc, text):
        """A job whose rank 0 writes `text` to its standard output and fails."""
        script = f'if [ $RANK = 0 ]; then printf "{text}"; exit 3; fi; sleep 60'
        return [SCALETRAIN, "launch", "--nproc", str(nproc), "--", "sh", "-c", script]

    def run_to(self, stream, nproc, text):
        status = subprocess.run(self.launch(nproc, text), stdout=stream, stderr=stream,
                                stdin=subprocess.DEVNULL, timeout=LIMIT_S, cwd=self.folder,
                                env=self.environment()).returncode
        self.assertEqual(1, status)

    def check(self, lines, text):
        report = next(i for i, line in enumerate(lines) if "rank 0 failed" in line)
        self.assertTrue(lines[report].startswith("rank 0 failed"), lines)
        self.assertEqual(text.replace("\\n", ""), lines[report - 1], lines)

    CASES = [(nproc, text) for nproc in (1, 2) for text in ("50 %%", "done\\n")]

    def test_in_a_file(self):
        for nproc, text in self.CASES:
            with (self.folder / "log").open("wb") as log:
                self.run_to(log, nproc, text)
            self.check((self.folder / "log").read_text().splitlines(), text.replace("%%", "%"))

    def test_on_a_terminal(self):
        for nproc, text in self.CASES:
            ours, terminal = os.openpty()
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 25, COLUMNS, 0, 0))
            self.run_to(terminal, nproc, text)
            os.close(terminal)
            shown = b""
            try:
                while part := os.read(ours, 4096):
                    shown += part
            except OSError:
                pass  # the terminal has gone
            os.close(ours)
            self.check(lines_of(shown.decode()), text.replace("%%", "%"))

    def test_in_a_pipe_behind_an_empty_line_at_most(self):
        for nproc, text in self.CASES:
            shown = subprocess.run(self.launch(nproc, text), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                   timeout=LIMIT_S, cwd=self.folder,
                                   env=self.environment()).stdout
            self.check([line for line in shown.splitlines() if line], text.replace("%%", "%"))

    def test_no_empty_line_is_added_with_separate_streams(self):
        done = self.run_launcher(*self.launch(1, "50 %%")[1:], expect=1)
        self.assertTrue(done.stderr.startswith("rank 0 failed"), done.stderr)
        self.assertEqual("50 %", done.stdout)


if __name__ == "__main__":
    unittest.main()
