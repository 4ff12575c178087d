"""Which files are safetensors: the reader of PyPI and ours agree on generated and damaged ones."""

import json
import os
import random
import struct
import subprocess
import unittest

import safetensors

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "safetensors_verdicts")
LONG = os.environ.get("SCALETRAIN_LONG") == "1"
FILES = 100_000 if LONG else 10_000
DTYPES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "F16": 2, "BF16": 2, "I32": 4, "F32": 4, "I64": 8,
          "F64": 8}


def generate(draw):
    """A sound file as its header, an object, and its data."""
    header, position = {}, 0
    if draw.random() < 0.3:
        header["__metadata__"] = {"format": "pt", "step": str(draw.randrange(100))}
    for number in range(draw.randrange(5)):
        dtype = draw.choice(list(DTYPES))
        shape = [draw.choice([0, 1, 2, 3, 7]) for _ in range(draw.randrange(4))]
        size = DTYPES[dtype]
        for dimension in shape:
            size *= dimension
        header[f"layer{number}.weight"] = {"dtype": dtype, "shape": shape,
                                           "data_offsets": [position, position + size]}
        position += size
    return header, draw.randbytes(position)


def damage_header(header, draw):
    """One value of the header is another one, of any kind."""
    tensors = [tensor for name, tensor in header.items() if name != "__metadata__"]
    if not tensors:
        return
    tensor = draw.choice(tensors)
    kind = draw.randrange(6)
    if kind == 0:
        tensor["dtype"] = draw.choice(["F32", "F64", "U8", "f32", "", "F9", None, 3])
    elif kind == 1:
        tensor["shape"] = draw.choice([[], [0], [1 << 40, 1 << 40], [-1], [1.5], "3", [2, 2], None])
    elif kind == 2:
        offsets = tensor["data_offsets"]
        offsets[draw.randrange(2)] += draw.choice([-8, -1, 1, 4, 1 << 62])
    elif kind == 3:
        del tensor[draw.choice(["dtype", "shape", "data_offsets"])]
    elif kind == 4:
        draw.shuffle(tensor["data_offsets"])
    else:
        other = draw.choice(tensors)
        tensor["data_offsets"] = list(other["data_offsets"])


def file_of(draw):
    header, data = generate(draw)
    how = draw.randrange(8)
    if how in (1, 2):
        damage_header(header, draw)
    text = json.dumps(header, separators=draw.choice([(",", ":"), (", ", ": ")])).encode()
    if how == 3:
        text += b" " * draw.randrange(12)
    if how == 4:
        data = data[:draw.randrange(len(data) + 1)] + draw.randbytes(draw.randrange(3))
    length = len(text)
    if how == 5:
        length = max(0, length + draw.choice([-1, 1, 8, 1 << 20, 1 << 33]))
    whole = bytearray(struct.pack("<Q", length) + text + data)
    if how == 6:
        for _ in range(draw.randrange(1, 4)):
            whole[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
    if how == 7:
        del whole[draw.randrange(len(whole) + 1):]
    return bytes(whole)


def accepts(data):
    try:
        safetensors.deserialize(data)
        return True
    except safetensors.SafetensorError:
        return False


def has_a_name_twice(data):
    """Whether readers could differ: PyPI's takes the last of two tensors of one name."""
    found = []

    def look(pairs):
        names = [name for name, _ in pairs]
        found.append(len(names) > len(set(names)))
        return dict(pairs)

    length = struct.unpack("<Q", data[:8])[0]
    json.loads(data[8:8 + length], object_pairs_hook=look)
    return any(found)


class SafetensorsTest(unittest.TestCase):
    def test_scaletrain_and_pypis_reader_accept_the_same_files(self):
        seed = random.randrange(1 << 30)
        print(f"files drawn with seed {seed}")
        draw = random.Random(seed)
        files = [file_of(draw) for _ in range(FILES)]
        stream = b"".join(struct.pack("<I", len(data)) + data for data in files)
        done = subprocess.run([PROGRAM], input=stream, capture_output=True, timeout=600)
        self.assertEqual(0, done.returncode, done.stderr)
        ours = [line == b"1" for line in done.stdout.split()]
        theirs = [accepts(data) for data in files]
        self.assertEqual(len(files), len(ours))
        different = [data for data, a, b in zip(files, ours, theirs)
                     if a != b and not (b and has_a_name_twice(data))]
        self.assertEqual([], different[:3], f"{len(different)} of {len(files)}, seed {seed}")
        sound = sum(theirs)
        print(f"{len(files)} files, {sound} of them sound")
        self.assertGreater(sound, FILES // 10)
        self.assertGreater(FILES - sound, FILES // 10)


if __name__ == "__main__":
    unittest.main()
