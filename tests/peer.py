"""Peers with a virtual environment of their own, which only the long form of tests has."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def python(name):
    """The interpreter of .deps/peer-NAME, which is made if it is not there."""
    subprocess.run([ROOT / "scripts/setup.sh", "--peer", name], check=True, capture_output=True, timeout=900)
    return ROOT / f".deps/peer-{name}/bin/python"
