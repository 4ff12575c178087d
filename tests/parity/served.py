"""The programs of this folder that run one command after the other (commands.h): each of them loads LibTorch
once for a suite."""

import functools
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = pathlib.Path(os.environ["SCALETRAIN_BIN"])


class Served:
    def __init__(self, name):
        self.name = name
        self.log = tempfile.TemporaryFile()
        # One thread: two that wait for each other on a busy machine take many times as long.
        self.process = subprocess.Popen(
            [BIN / name, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
            env=dict(os.environ, OMP_NUM_THREADS="1"))
        unittest.addModuleCleanup(self.end)

    def end(self):
        """The program ends with its input."""
        self.process.communicate()
        self.log.close()
        server.cache_clear()

    def run(self, words):
        """(exit code, what it prints, its error message)."""
        self.process.stdin.write("\t".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()
        printed = b""
        while not (line := self.process.stdout.readline()).startswith(b"\x1f "):
            if not line:
                self.log.seek(0)
                raise AssertionError(f"{self.name} ended with {self.process.wait()}: "
                                     f"{self.log.read()[-4000:].decode()}")
            printed += line
        _, status, size = line.split()
        return int(status), printed.decode(), self.process.stdout.read(int(size)).decode()


@functools.cache
def server(name):
    """The program `name`, which ends with the module of tests that has started it."""
    return Served(name)


def run(name, *words):
    """What `name` prints; AssertionError where its exit code is not 0."""
    status, printed, error = server(name).run(words)
    if status != 0:
        raise AssertionError(f"{name} ended with {status}: {error}")
    return printed
