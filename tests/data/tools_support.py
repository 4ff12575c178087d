"""What the tests of `scaletrain data` share: run a command, pictures and tars to try it on."""
import glob
import io
import json
import os
import subprocess
import tarfile
import tempfile
import unittest

import numpy
from PIL import Image

PROGRAM = os.path.abspath(os.path.join(os.environ["SCALETRAIN_BIN"], "scaletrain"))


def data(*arguments, code=0, text=True):
    """`scaletrain data ...`; standard output, after its exit code was compared."""
    done = subprocess.run([PROGRAM, "data", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    if done.returncode != code:
        raise AssertionError(f"exit {done.returncode}, not {code}: {arguments}\n"
                             f"{done.stdout[-2000:]}\n{done.stderr.decode()[-2000:]}")
    if code != 0 and not done.stdout:
        return done.stderr.decode()
    return done.stdout.decode() if text else done.stdout


def back_to_text(tokenizer, texts):
    """What the tokens of each text stand for, shown token by token, and whether the tokenizer puts a
    blank in front."""
    done = subprocess.run([os.path.join(os.environ["SCALETRAIN_BIN"], "tokenizer_program"), tokenizer],
                          input="".join(json.dumps(text) + "\n" for text in texts), timeout=120,
                          stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True)
    lines = [json.loads(line) for line in done.stdout.split("\n") if line]
    return [line["text"] for line in lines], lines[0]["blank"]


def data_json(*arguments, code=0):
    return json.loads(data(*arguments, "--json", code=code))


def picture(seed, width=32, height=24, kind="JPEG"):
    """The bytes of a picture that no other seed has."""
    random = numpy.random.default_rng(seed)
    coarse = random.integers(0, 256, (4, 4, 3), dtype=numpy.uint8)
    image = Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR)
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def class_folders(folder, classes=("cat", "dog", "emu"), each=10):
    """A folder for each class, JPEG and PNG files in it; {relative path: bytes}."""
    files = {}
    for number, name in enumerate(classes):
        os.makedirs(os.path.join(folder, name))
        for i in range(each):
            kind = "PNG" if i % 3 == 0 else "JPEG"
            path = f"{name}/{i:03d}.{'png' if kind == 'PNG' else 'jpg'}"
            files[path] = picture(1000 * number + i, 20 + i, 30, kind)
            with open(os.path.join(folder, path), "wb") as file:
                file.write(files[path])
    return files


def samples_of(folder):
    """[(key, {extension: bytes})] of its shards, by webdataset."""
    import webdataset  # here, since it takes seconds to load

    shards = sorted(glob.glob(os.path.join(folder, "*.tar")))
    return [(s["__key__"], {k: v for k, v in s.items() if not k.startswith("__")})
            for s in webdataset.WebDataset(shards, shardshuffle=False)]


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def read_json(path):
    return json.loads(read_bytes(path))


def write_tar(path, members):
    """members: (name, bytes) pairs, by Python's tarfile."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


class FolderTest(unittest.TestCase):
    """A test with a temporary folder."""
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="data_tools_")
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path
