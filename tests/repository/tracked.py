"""The files of the repository and their text."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def files(*patterns):
    """Files that git tracks or would track, as paths relative to the root; `patterns` as git's."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    output = subprocess.run(command + list(patterns), cwd=ROOT, check=True, stdout=subprocess.PIPE,
                            timeout=60).stdout
    names = (name for name in output.decode().split("\0") if name)
    return [pathlib.Path(name) for name in names if (ROOT / name).is_file()]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def starts_with(path, *beginnings):
    with open(ROOT / path, "rb") as file:
        return file.read(64).startswith(beginnings)
