"""Readers of the files that exporters write: TensorBoard events and Weights & Biases offline runs."""
import json
import struct
import zlib

import crc32c


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def masked_crc(data):
    crc = crc32c.crc32c(data)
    return (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8) & 0xFFFFFFFF


def tf_records(data):
    """The records of a TFRecord file, whose checksums are verified."""
    while data:
        length, = struct.unpack("<Q", data[:8])
        assert struct.unpack("<I", data[8:12])[0] == masked_crc(data[:8])
        record, data = data[12:12 + length], data[12 + length:]
        assert struct.unpack("<I", data[:4])[0] == masked_crc(record)
        data = data[4:]
        yield record


def varint(data):
    value = shift = 0
    for index, byte in enumerate(data):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, data[index + 1:]
    raise ValueError("a varint without an end")


def message(data):
    """{field number: [values]} of a Protocol Buffers message."""
    found = {}
    while data:
        key, data = varint(data)
        if key & 7 == 0:
            value, data = varint(data)
        elif key & 7 == 1:
            value, data = struct.unpack("<d", data[:8])[0], data[8:]
        elif key & 7 == 5:
            value, data = struct.unpack("<f", data[:4])[0], data[4:]
        else:
            length, data = varint(data)
            value, data = data[:length], data[length:]
        found.setdefault(key >> 3, []).append(value)
    return found


def log_records(data):
    """The records of a .wandb file, whose checksums are verified."""
    assert data[:7] == b":W&B\xe1\xbe\0"
    position, parts = 7, []
    while position < len(data):
        left = 32768 - position % 32768
        if left < 7:
            assert data[position:position + left] == bytes(left)
            position += left
            continue
        crc, length, kind = struct.unpack("<IHB", data[position:position + 7])
        part = data[position + 7:position + 7 + length]
        assert len(part) == length and zlib.crc32(bytes([kind]) + part) == crc
        position += 7 + length
        parts.append(part)
        assert (kind in (1, 2)) == (len(parts) == 1)
        if kind in (1, 4):
            yield b"".join(parts)
            parts = []
    assert not parts


def json_items(messages):
    """{key: value} of config, history or summary items."""
    items = [message(item) for item in messages]
    return {item[1][0].decode(): json.loads(item[16][0]) for item in items}


class OfflineRun:
    """The file of a folder offline-run-TIME-ID, field by field."""

    def __init__(self, folder):
        self.id = folder.name.rsplit("-", 1)[1]
        records = [message(record) for record in log_records((folder / f"run-{self.id}.wandb").read_bytes())]
        assert [record[1][0] for record in records] == list(range(1, len(records) + 1))
        kinds = [next(number for number in record if number != 1) for record in records]
        assert kinds == [21, 17] + [2] * (len(records) - 5) + [3, 18, 22], kinds
        self.run = message(records[1][17][0])
        self.config = json_items(message(self.run[4][0])[1])
        self.rows = {}  # {step: {key: value}}
        for record in records[2:-3]:
            history = message(record[2][0])
            row = json_items(history[1])
            assert row["_step"] == message(history[2][0])[1][0] and row["_step"] not in self.rows
            self.rows[row["_step"]] = row
        self.summary = json_items(message(records[-3][3][0])[1])
        self.exit_code = message(records[-2][18][0])[1][0]
