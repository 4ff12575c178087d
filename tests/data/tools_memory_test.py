"""What the tools keep in memory of a sample: no more than the table in docs/reference/data.md says."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from tools_support import PROGRAM, FolderTest, data

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/data.md"
FEW, MANY = (20_000, 140_000) if os.environ.get("SCALETRAIN_LONG") == "1" else (10_000, 70_000)
NOISE_BYTES = 2 << 20  # blocks of the allocator, what threads are ahead
ATTEMPTS = 3  # on a busy machine, threads that wait get further ahead


def documented_bytes(command):
    """Of a sample, in the row of the table that names the command."""
    row = re.search(rf"^\|[^|]*`{command}`[^|]*\| (\d+) \|", DOCUMENT.read_text(), re.MULTILINE)
    return int(row[1])


# A process is charged with the peak of the one that it was forked from: this one is small. Prints
# its own peak, the command's, and how the command ended.
SMALL = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                     file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
own = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(own, usage.ru_maxrss, status)
"""


def peak_bytes(*arguments):
    """The most memory that a command was resident with."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", SMALL, PROGRAM, "data",
                           *map(str, arguments)], stdout=subprocess.PIPE, check=True)
    own, peak, status = map(int, done.stdout.split())
    if status != 0 or peak <= own:
        raise AssertionError(f"status {status}, peaks {own} and {peak} kB: {arguments}")
    return peak * 1024


class Memory(FolderTest):
    def test_memory_grows_at_most_as_documented(self):
        folders = {}
        for count in (FEW, MANY):
            folders[count] = self.path(str(count))
            data("synth", folders[count], "--samples", count, "--classes", 5, "--size", 8,
                 "--encoding", "raw", "--samples-per-shard", 5000)
        for command, flags in (("stats", []), ("check", []), ("split", ["--val", 0.1]),
                               ("dedup", ["--near", 1]), ("ls", []),
                               # Threads that wait for each other would get ahead on a busy machine.
                               ("card", ["--threads", 1])):
            allowed = documented_bytes(command) * (MANY - FEW) + NOISE_BYTES
            for attempt in range(ATTEMPTS):
                peaks = {}
                for count, folder in folders.items():
                    pathlib.Path(folder, "card.json").unlink(missing_ok=True)
                    out = self.path(f"{command}-{count}-{attempt}")
                    out = ["--out", out] if command in ("split", "dedup") else []
                    peaks[count] = peak_bytes(command, folder, *flags, *out)
                grown = peaks[MANY] - peaks[FEW]
                print(f"{command}: {peaks[FEW] / 1e6:.1f} MB for {FEW} samples, "
                      f"{peaks[MANY] / 1e6:.1f} MB for {MANY}: {grown / (MANY - FEW):.1f} bytes each")
                if grown <= allowed:
                    break
            with self.subTest(command):
                self.assertLessEqual(grown, allowed)


if __name__ == "__main__":
    unittest.main()
