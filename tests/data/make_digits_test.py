"""scripts/make_digits.py: the same bytes every time, and no work where they are."""
import hashlib
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make(folder, *options):
    subprocess.run([sys.executable, ROOT / "scripts/make_digits.py", *options, folder], check=True,
                   timeout=120)


def members(path):
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def digest(folder):
    """One digest of all files, names included."""
    state = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


class MakeDigitsTest(unittest.TestCase):
    def test_two_runs_are_the_same_bytes_and_a_third_changes_nothing(self):
        with tempfile.TemporaryDirectory() as name:
            one, two = pathlib.Path(name, "one"), pathlib.Path(name, "two")
            make(one)
            make(two)
            self.assertEqual(digest(one), digest(two))
            times = {path: path.stat().st_mtime_ns for path in one.iterdir()}
            make(one)
            self.assertEqual(times, {path: path.stat().st_mtime_ns for path in one.iterdir()})
            self.assertEqual(json.loads((one / "classes.json").read_text()), list("0123456789"))

    def test_multi_label_has_the_same_images_with_lists_of_classes(self):
        with tempfile.TemporaryDirectory() as name:
            plain, lists = pathlib.Path(name, "plain"), pathlib.Path(name, "lists")
            make(plain)
            make(lists, "--multi-label")
            self.assertEqual(json.loads((lists / "classes.json").read_text()),
                             [*"0123456789", "even", "prime", "loop"])
            seen = set()
            listed = members(lists / "val-000000.tar")
            for key, data in members(plain / "val-000000.tar").items():
                if key.endswith(".png"):
                    self.assertEqual(listed[key], data)
                else:
                    self.assertEqual(json.loads(listed[key])[0], int(data))
                    seen.add(listed[key].decode())
            self.assertEqual(seen, {
                "[0, 10, 12]", "[1]", "[2, 10, 11]", "[3, 11]", "[4, 10]", "[5, 11]", "[6, 10, 12]",
                "[7, 11]", "[8, 10, 12]", "[9, 12]"})

    def test_a_missing_shard_is_made_again(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            make(folder)
            before = digest(folder)
            (folder / "train-000002.tar").unlink()
            make(folder)
            self.assertEqual(digest(folder), before)


if __name__ == "__main__":
    unittest.main()
