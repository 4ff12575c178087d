"""Windows of token files that numpy wrote, as nanoGPT and llm.c lay them out, against numpy's slices."""

import io
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ROOT / "build/release/bin")) / "data_program"
CONTEXT = 64


def windows(tokens, without_loss=()):
    """What nanoGPT would take at 0, CONTEXT, 2 CONTEXT, ...: x, and y one further."""
    targets = tokens.astype(numpy.int64)
    targets[list(without_loss)] = -100
    return [(tokens[i:i + CONTEXT].tolist(), targets[i + 1:i + CONTEXT + 1].tolist())
            for i in range(0, len(tokens) - CONTEXT, CONTEXT)]


def llmc_header(magic, version, count):
    header = numpy.zeros(256, dtype=numpy.int32)
    header[:3] = magic, version, count
    return header.tobytes()


class TokensTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        draws = numpy.random.default_rng(7)
        self.narrow = draws.integers(0, 1 << 16, 1000).astype(numpy.uint16)
        self.wide = draws.integers(0, 1 << 32, 10 * CONTEXT + 1).astype(numpy.uint32)

    def check(self, file, expected):
        out = subprocess.run([PROGRAM, "windows", str(CONTEXT), file], check=True, text=True,
                             capture_output=True).stdout
        lines = [line.split(" ", 1) for line in out.splitlines()]
        self.assertEqual({line[0] for line in lines}, {file.name})
        self.assertEqual([tuple([int(word) for word in part.split()] for part in line[1].split("->"))
                          for line in lines], expected)

    def test_nanogpt(self):
        file = self.folder / "train.bin"
        self.narrow.tofile(file)
        self.check(file, windows(self.narrow))

    def test_llmc(self):
        file = self.folder / "gpt2.bin"
        file.write_bytes(llmc_header(20240520, 1, 1000) + self.narrow.tobytes())
        self.check(file, windows(self.narrow))
        file = self.folder / "llama3.bin"
        file.write_bytes(llmc_header(20240801, 7, len(self.wide)) + self.wide.tobytes())
        self.check(file, windows(self.wide))

    def test_a_mask_that_numpy_packed(self):
        file = self.folder / "train.bin"
        self.narrow.tofile(file)
        marked = numpy.random.default_rng(8).random(len(self.narrow)) < 0.3
        count = numpy.array([len(marked)], dtype="<u8")
        mask = self.folder / "train.bin.mask"
        mask.write_bytes(b"stmask1\n" + count.tobytes() +
                         numpy.packbits(marked, bitorder="little").tobytes())
        self.check(file, windows(self.narrow, numpy.flatnonzero(marked)))

    def test_npy_alone_and_in_a_tar(self):
        file = self.folder / "a.npy"
        numpy.save(file, self.wide)
        self.check(file, windows(self.wide))
        file = self.folder / "a.tar"
        with tarfile.open(file, "w") as tar:
            for name, tokens in (("0.npy", self.narrow), ("1.npy", self.wide)):
                data = io.BytesIO()
                numpy.save(data, tokens)
                info = tarfile.TarInfo(name)
                info.size = data.tell()
                data.seek(0)
                tar.addfile(info, data)
        self.check(file, windows(self.narrow) + windows(self.wide))


if __name__ == "__main__":
    unittest.main()
