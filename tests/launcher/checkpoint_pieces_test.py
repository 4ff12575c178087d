"""`scaletrain checkpoint` on checkpoints in pieces, which Python writes by docs/reference/formats/."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy
import safetensors.numpy

from launcher.checkpoint_support import NO_TENSORS, sha256, state_of, write_checkpoint

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "scaletrain"
METADATA = {"format": "pt", "step": "20"}
ROWS, COLUMNS = 6, 5
WEIGHT = numpy.arange(ROWS * COLUMNS, dtype=numpy.float32).reshape(ROWS, COLUMNS)
BIAS = numpy.arange(3, dtype=numpy.int64)


def run(*arguments):
    return subprocess.run([PROGRAM, "checkpoint", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)


def offset_of(data, name):
    length = struct.unpack("<Q", data[:8])[0]
    return 8 + length + json.loads(data[8:8 + length])[name]["data_offsets"][0]


def write_pieces(run_folder, boxes, table_changes=None):
    """A checkpoint whose "w" is cut in `boxes` of (rows, columns), a file for each; its folder."""
    recipe = '{"name": "test", "steps": 30}'
    folder = write_checkpoint(run_folder, state_of(20), recipe, NO_TENSORS,
                              safetensors.numpy.save({}, METADATA))
    (folder / "model.safetensors").unlink()
    pieces = []
    for number, (rows, columns) in enumerate(boxes):
        name = f"model-{number}.safetensors"
        part = numpy.ascontiguousarray(WEIGHT[slice(*rows), slice(*columns)])
        tensors = {"w": part.reshape(-1)}
        if number == 0:
            tensors["b"] = BIAS
        data = safetensors.numpy.save(tensors, METADATA)
        (folder / name).write_bytes(data)
        pieces.append({"begin": [rows[0], columns[0]], "size": list(part.shape),
                       "range": [0, part.size], "file": name, "offset": offset_of(data, "w")})
        if number == 0:
            bias = {"begin": [0], "size": [3], "range": [0, 3], "file": name,
                    "offset": offset_of(data, "b")}
    tables = {"model.safetensors": {
        "w": {"dtype": "F32", "shape": [ROWS, COLUMNS], "pieces": pieces},
        "b": {"dtype": "I64", "shape": [3], "pieces": [bias]}}}
    if table_changes:
        table_changes(tables["model.safetensors"])
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path.read_bytes())}
             for path in folder.iterdir() if path.name != "manifest.json"}
    body = json.dumps({"format": 2, "program": "test", "step": 20, "files": files,
                       "tensors": tables})[:-1]
    (folder / "manifest.json").write_text(
        body + ',\n "manifest_sha256": "' + sha256(body.encode()) + '"\n}\n')
    return folder


QUARTERS = [((0, 2), (0, 3)), ((0, 2), (3, 5)), ((2, 6), (0, 3)), ((2, 6), (3, 5))]


class CheckpointPieces(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def printed(self, *arguments):
        done = run(*arguments)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        return done.stdout

    def test_pieces_are_shown_and_joined_as_the_tensors_that_they_are(self):
        """What docs/reference/checkpoints.md shows:

        scaletrain checkpoint reshard runs/kept --output runs/kept-whole
        """
        folder = write_pieces(self.folder, QUARTERS)
        self.assertEqual(f"whole    {folder}\n", self.printed("verify", folder))
        shown = json.loads(self.printed("inspect", folder, "--json"))
        self.assertEqual(2, shown["format"])
        self.assertEqual(
            [{"name": "b", "dtype": "I64", "shape": [3], "bytes": 24, "file": "model.safetensors"},
             {"name": "w", "dtype": "F32", "shape": [ROWS, COLUMNS], "bytes": 120,
              "file": "model.safetensors"}], shown["tensors"])
        joined = self.folder / "joined"
        self.assertEqual(f"{joined}: {folder} in whole files, which had 4 files of pieces\n",
                         self.printed("reshard", folder, "--output", joined))
        tensors = safetensors.numpy.load_file(joined / "model.safetensors")
        numpy.testing.assert_array_equal(WEIGHT, tensors["w"])
        numpy.testing.assert_array_equal(BIAS, tensors["b"])
        again = json.loads(self.printed("inspect", joined, "--json"))
        self.assertEqual(2, again["format"])
        self.assertEqual(shown["model_digest"], again["model_digest"])
        self.assertEqual(["classes.json", "model.safetensors", "optimizer.safetensors",
                          "recipe.json", "state.json"], [file["name"] for file in again["files"]])
        self.assertIn("0 of 2 tensors differ", self.printed("diff", folder, joined))

    def test_a_place_that_is_taken_is_refused(self):
        folder = write_pieces(self.folder, QUARTERS)
        done = run("reshard", folder, "--output", self.folder)
        self.assertEqual((2, ""), (done.returncode, done.stdout))
        self.assertIn(f"--output: {self.folder} exists already\n  name a new folder", done.stderr)

    def test_a_table_that_does_not_hold_each_element_once_is_refused_once(self):
        def without_last(table):
            table["w"]["pieces"].pop()

        def other_box(table):
            table["w"]["pieces"][3]["begin"] = [1, 3]

        for change, found in [
                (without_last,
                 'the tensor "w" of model.safetensors has 30 elements, and its pieces 22'),
                (other_box, 'the tensor "w" of model.safetensors has an element in two pieces, in '
                            "model-1.safetensors and in model-3.safetensors")]:
            folder = write_pieces(self.folder, QUARTERS, change)
            for command in ("verify", "inspect"):
                done = run(command, folder)
                self.assertEqual(65, done.returncode)
                text = done.stdout + done.stderr
                self.assertEqual(1, text.count(f"{folder}/manifest.json: {found}"), text)
            shutil.rmtree(self.folder / "checkpoints")


if __name__ == "__main__":
    unittest.main()
