"""`scaletrain checkpoint inspect|verify` on checkpoints that Python writes by docs/reference/formats/, and the
reader of safetensors against the one of PyPI."""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import safetensors
import safetensors.numpy

from launcher import checkpoint_support
from launcher.checkpoint_support import sha256, state_of, write_manifest

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "scaletrain"
VERIFY_REMEDY = "use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete"


def run(*arguments):
    return subprocess.run([PROGRAM, "checkpoint", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)


def tensors_of(step):
    return {"fc.weight": numpy.full((3, 2), step, numpy.float32),
            "norm.num_batches_tracked": numpy.array(step, numpy.int64),
            "a": numpy.arange(5, dtype=numpy.uint8)}


def state_with_best(step, **changes):
    return state_of(step, **{"best_metric": 0.5, "best_step": 10, **changes})


def write_checkpoint(run_folder, step, **tensors):
    return checkpoint_support.write_checkpoint(
        run_folder, state_with_best(step), '{"name": "test", "steps": 30}',
        **{"model": safetensors.numpy.save(tensors_of(step), {"format": "pt"}),
           "optimizer": safetensors.numpy.save(
               {"exp_avg/fc.weight": numpy.zeros((3, 2), numpy.float32)}), **tensors})


class CheckpointCommand(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_inspect_tells_what_a_checkpoint_holds(self):
        folder = write_checkpoint(self.folder, 20)
        done = run("inspect", folder, "--json")
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        found = json.loads(done.stdout)
        self.assertEqual((20, 2, 4, 0.5, 10), (found["step"], found["epoch"], found["world_size"],
                                               found["best_metric"], found["best_step"]))
        digest = hashlib.sha256()
        names = {"float32": "F32", "int64": "I64", "uint8": "U8"}
        for name, value in sorted(tensors_of(20).items()):
            dimensions = ",".join(map(str, value.shape))
            digest.update(f"{name}\0{names[value.dtype.name]}\0{dimensions}\0".encode())
            digest.update(value.tobytes())
        self.assertEqual(digest.hexdigest(), found["model_digest"])
        self.assertEqual(
            [{"name": "a", "dtype": "U8", "shape": [5], "bytes": 5, "file": "model.safetensors"},
             {"name": "fc.weight", "dtype": "F32", "shape": [3, 2], "bytes": 24,
              "file": "model.safetensors"},
             {"name": "norm.num_batches_tracked", "dtype": "I64", "shape": [], "bytes": 8,
              "file": "model.safetensors"},
             {"name": "exp_avg/fc.weight", "dtype": "F32", "shape": [3, 2], "bytes": 24,
              "file": "optimizer.safetensors"}], found["tensors"])
        self.assertEqual(
            [{"name": path.name, "bytes": path.stat().st_size, "sha256": sha256(path.read_bytes())}
             for path in sorted(folder.iterdir()) if path.name != "manifest.json"], found["files"])

    def test_inspect_for_a_person(self):
        folder = write_checkpoint(self.folder, 20)
        done = run("inspect", folder)
        digest = json.loads(run("inspect", folder, "--json").stdout)["model_digest"]
        sizes = {path.name: path for path in folder.iterdir() if path.name != "manifest.json"}
        files = "".join(f"  {path.stat().st_size:>13}  {sha256(path.read_bytes())}  {name}\n"
                        for name, path in sorted(sizes.items()))
        self.assertEqual(
            f"path          {folder}\nprogram       scaletrain 0.1.0\nstep          20\n"
            f"epoch         2\nworld_size    4\nmodel_digest  {digest}\n\nfiles\n{files}\n"
            "tensors\n"
            "  U8    [5]                  model.safetensors: a\n"
            "  F32   [3,2]                model.safetensors: fc.weight\n"
            "  I64   []                   model.safetensors: norm.num_batches_tracked\n"
            "  F32   [3,2]                optimizer.safetensors: exp_avg/fc.weight\n", done.stdout)

    def test_a_run_means_its_newest_whole_checkpoint_and_links_mean_theirs(self):
        write_checkpoint(self.folder, 10)
        newest = write_checkpoint(self.folder, 20)
        (self.folder / "checkpoints" / "best").symlink_to("step-00000010")
        (self.folder / "checkpoints" / "latest").symlink_to("step-00000020")
        for path, step in [(self.folder, 20), (self.folder / "checkpoints", 20),
                           (self.folder / "checkpoints" / "latest", 20),
                           (self.folder / "checkpoints" / "best", 10)]:
            self.assertEqual(step, json.loads(run("inspect", path, "--json").stdout)["step"])
        (newest / "state.json").unlink()
        done = run("inspect", self.folder, "--json")
        self.assertEqual(10, json.loads(done.stdout)["step"])
        self.assertEqual(f"warning: {newest}/state.json: is missing\n  {VERIFY_REMEDY}\n",
                         done.stderr)
        done = run("inspect", self.folder / "checkpoints" / "latest")
        self.assertEqual((65, ""), (done.returncode, done.stdout))
        self.assertIn(f"{newest}/state.json: is missing\n  {VERIFY_REMEDY}\n", done.stderr)

    def test_verify_names_each_damaged_checkpoint(self):
        folders = {step: write_checkpoint(self.folder, step) for step in (10, 20, 30)}
        done = run("verify", self.folder)
        whole = {step: f"whole    {folder}\n" for step, folder in folders.items()}
        self.assertEqual((0, whole[30] + whole[20] + whole[10], ""),
                         (done.returncode, done.stdout, done.stderr))
        model = folders[20] / "model.safetensors"
        before = model.read_bytes()
        after = before[:-1] + bytes([before[-1] ^ 1])
        model.write_bytes(after)
        done = run("verify", self.folder)
        error = (f"{model}: has the SHA-256 {sha256(after)}, its manifest says {sha256(before)}")
        self.assertEqual((65, f"{whole[30]}damaged  {folders[20]}\n         {error}\n{whole[10]}"),
                         (done.returncode, done.stdout))
        done = run("verify", self.folder, "--json")
        self.assertEqual(65, done.returncode)
        self.assertEqual({"whole": False, "checkpoints": [
            {"path": str(folders[30]), "whole": True, "step": 30},
            {"path": str(folders[20]), "whole": False, "error": f"{error}\n  {VERIFY_REMEDY}"},
            {"path": str(folders[10]), "whole": True, "step": 10}]}, json.loads(done.stdout))
        self.assertEqual(0, run("verify", folders[10]).returncode)
        self.assertEqual(65, run("verify", folders[20]).returncode)

    def test_verify_and_inspect_refuse_what_makes_no_sense(self):
        folder = write_checkpoint(self.folder, 20)
        nan = numpy.array([[1, 2], [3, numpy.nan], [5, 6]], numpy.float32)
        for file, content, error in [
                ("state.json", b"{}", "state.json: /format: is missing"),
                ("state.json", json.dumps(state_with_best(20, best_step=-1)).encode(),
                 "state.json: /best_metric: is 0.5, and the best step is -1"),
                ("state.json", json.dumps(state_with_best(20, best_metric=5.0)).encode(),
                 "state.json: /best_metric: is 5, and top1 is from 0 to 1"),
                ("state.json", json.dumps(state_with_best(20, samples=-1)).encode(),
                 "state.json: /samples: is -1"),
                ("state.json", json.dumps(state_with_best(40)).encode(),
                 "state.json: /step: is 40, and manifest.json says 20"),
                ("recipe.json", b'{"steps": 19}',
                 "state.json: /step: is 20 in a training of 19 steps"),
                ("classes.json", b"{}", "classes.json: is not a list of names"),
                ("optimizer.safetensors",
                 safetensors.numpy.save({"step": numpy.array(30.5, numpy.float32)}),
                 'optimizer.safetensors: the tensor "step" counts 30.5 updates, and state.json says '
                 "20 (20 steps, 0 left out)"),
                ("model.safetensors", safetensors.numpy.save({"fc.weight": nan}),
                 'model.safetensors: the tensor "fc.weight" is not finite at its element 3'),
                ("model.safetensors",
                 safetensors.numpy.save({"fc.weight": numpy.zeros(3)}, {"step": "10"}),
                 'model.safetensors: holds tensors of step "10", and state.json says 20')]:
            with self.subTest(error):
                whole = (folder / file).read_bytes()
                (folder / file).write_bytes(content)
                write_manifest(folder, 20)
                done = run("verify", self.folder)
                self.assertEqual((65, f"damaged  {folder}\n         {folder}/{error}\n"),
                                 (done.returncode, done.stdout))
                done = run("inspect", folder)
                self.assertEqual((65, ""), (done.returncode, done.stdout))
                self.assertIn(error, done.stderr)
                (folder / file).write_bytes(whole)
        write_manifest(folder, 20)
        self.assertEqual(0, run("verify", self.folder).returncode)

    def test_what_cannot_be_read_is_not_called_damaged(self):
        write_checkpoint(self.folder, 10)
        unread = self.folder / "checkpoints" / "step-00000020"
        unread.symlink_to(unread.name)
        done = run("verify", self.folder)
        self.assertEqual(74, done.returncode)
        self.assertIn(f"unread   {unread}\n         {unread}/manifest.json: cannot be read: Too many "
                      "levels of symbolic links (ELOOP)\n", done.stdout)
        done = run("inspect", self.folder)  # what is newest cannot be said
        self.assertEqual((74, ""), (done.returncode, done.stdout))

    def test_where_there_is_none(self):
        for command in ("inspect", "verify"):
            for path, found in ((self.folder, "has no checkpoint"),
                                (self.folder / "absent", "does not exist")):
                done = run(command, path)
                self.assertEqual(65, done.returncode)
                self.assertIn(f"{path}: {found}\n  name a run's folder, its checkpoints folder or "
                              "one checkpoint\n", done.stderr)

    def test_a_newer_format_names_its_program(self):
        folder = write_checkpoint(self.folder, 10)
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest.update(format=9, program="scaletrain 9.0.0")
        (folder / "manifest.json").write_text(json.dumps(manifest))
        done = run("inspect", folder)
        self.assertEqual(65, done.returncode)
        self.assertIn(f"{folder}: was written by scaletrain 9.0.0, format 9; this program reads up "
                      "to 2\n  use that program, or a newer one\n", done.stderr)


def file_of(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="U8", shape=(2,), offsets=(0, 2)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


ONE = b'{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
CASES = {
    "whole": file_of({"a": tensor()}, b"xy"),
    "empty": file_of({}),
    "scalar": file_of({"a": tensor(shape=[], offsets=[0, 1])}, b"x"),
    "other order": file_of({"b": tensor(offsets=[2, 4]), "a": tensor()}, b"wxyz"),
    "metadata": file_of({"__metadata__": {"a": "b"}, "a": tensor()}, b"xy"),
    "spaces behind": file_of(b'{"a":' + ONE + b"}   ", b"xy"),
    "too short": b"1234567",
    "length beyond the file": file_of({}, length=3),
    "length of 2^63": file_of({}, length=1 << 63),
    "length of 100 GB": file_of({}, length=100_000_000_000),
    "a list": file_of([]),
    "rubbish behind": file_of(b'{"a":' + ONE + b"}x", b"xy"),
    "byte order mark": file_of(b"\xef\xbb\xbf{}"),
    "not UTF-8": file_of(b'{"\xff":' + ONE + b"}", b"xy"),
    "deep": file_of(b'{"a":' + b"[" * 1_000_000),
    "negative": file_of({"a": tensor(shape=[-2])}, b"xy"),
    "fraction": file_of({"a": tensor(shape=[2.0])}, b"xy"),
    "overflow": file_of({"a": tensor(shape=[1 << 63, 2])}, b"xy"),
    "overflow of the product": file_of({"a": tensor(shape=[1 << 62, 4], offsets=[0, 0])}),
    "unknown dtype": file_of({"a": tensor(dtype="f32")}, b"xy"),
    "wrong span": file_of({"a": tensor(offsets=[0, 3])}, b"xyz"),
    "backwards": file_of({"a": tensor(offsets=[2, 0])}, b"xy"),
    "hole": file_of({"a": tensor(offsets=[1, 3])}, b"xyz"),
    "overlap": file_of({"a": tensor(), "b": tensor(offsets=[1, 3])}, b"xyz"),
    "data behind": file_of({"a": tensor()}, b"xyz"),
    "data missing": file_of({"a": tensor()}, b"x"),
    "metadata of numbers": file_of({"__metadata__": {"a": 1}, "a": tensor()}, b"xy"),
    "dtype twice": file_of(b'{"a":{"dtype":"U8",' + ONE[1:] + b"}", b"xy"),
    "offsets missing": file_of({"a": {"dtype": "U8", "shape": [2]}}, b"xy"),
}
# What PyPI's reader lets pass and ours does not: names, keys and starts that another reader may
# understand differently.
STRICTER = {
    "name twice": file_of(b'{"a":' + ONE + b',"a":' + ONE + b"}", b"xy"),
    "unknown key": file_of({"a": dict(tensor(), more=1)}, b"xy"),
    "space in front": file_of(b' {"a":' + ONE + b"}", b"xy"),
}


def write_hostile(run_folder, data):
    """A checkpoint with `data` as its model, whole but for that."""
    return write_checkpoint(run_folder, 10, model=data, optimizer=file_of({}))


# Prints the status and the peak memory in KiB of a command. A process of its own: a child's peak
# begins with that of its parent.
PEAK = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


class HostileSafetensors(unittest.TestCase):
    def accepts(self, data):
        """Whether `inspect` opens a checkpoint with this model."""
        with tempfile.TemporaryDirectory() as name:
            folder = write_hostile(pathlib.Path(name), data)
            start = time.monotonic()
            done = run("inspect", folder)
            self.assertLess(time.monotonic() - start, 20)
        self.assertIn(done.returncode, (0, 65), done.stderr)
        if done.returncode == 65:
            self.assertIn(f"{folder / 'model.safetensors'}: ", done.stderr)
        return done.returncode == 0

    def test_it_agrees_with_the_reader_of_pypi(self):
        for name, data in CASES.items():
            with self.subTest(name):
                try:
                    safetensors.deserialize(data)
                    oracle = True
                except safetensors.SafetensorError:
                    oracle = False
                self.assertEqual(oracle, self.accepts(data))

    def test_it_is_stricter_where_readers_could_differ(self):
        for name, data in STRICTER.items():
            with self.subTest(name):
                safetensors.deserialize(data)
                self.assertFalse(self.accepts(data))

    def test_the_largest_header_costs_little_memory(self):
        # 32 MB, the longest that is read, in the form that costs most: as many tensors as fit.
        entry = b'"%07d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
        count = 32_000_000 // len(entry % 0) - 1
        header = b"{" + b"".join(entry % number for number in range(count)) + b'"x":1}'
        with tempfile.TemporaryDirectory() as name:
            folder = write_hostile(pathlib.Path(name), file_of(header))
            done = subprocess.run([sys.executable, "-c", PEAK, PROGRAM, "checkpoint", "inspect", folder],
                                  stdout=subprocess.PIPE, text=True, timeout=60)
        status, peak = map(int, done.stdout.split())
        self.assertEqual(65, status)
        if b"__asan_init" in PROGRAM.read_bytes() or b"__tsan_init" in PROGRAM.read_bytes():
            self.skipTest("sanitizers keep memory of their own")
        self.assertLess(peak, 200 << 10)


if __name__ == "__main__":
    unittest.main()
