#!/usr/bin/env python3
"""Count the comment sentences that begin with a word after which no subject comes.

    scripts/comment_fragments.py [--list] [PATH...]    PATH: a module or a file, default: all of lib, launcher and app

A table of modules: such sentences, all sentences, share. --list prints each with file and line.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".def"}
FRAGMENT = re.compile(r"(of|what|whether|where|which|that|those|by|from|behind|the same)\b", re.IGNORECASE)


def comments(text):
    """(line, text) of each comment; lines that follow each other are one."""
    block, first = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        alone = re.match(r"\s*//\s?(.*)", line)
        if alone:
            first = first if block else number
            block.append(alone[1])
            continue
        if block:
            yield first, " ".join(block)
            block = []
        behind = re.search(r"[;{},)]\s+//\s(.*)$", line)
        if behind:
            yield number, behind[1]


def sentences(comment):
    return [one.strip() for one in re.split(r"(?<=[.:;])\s+(?=[A-Z{`\"])", comment)
            if re.search("[a-z]{2}", one)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("paths", nargs="*", type=pathlib.Path, default=[ROOT / top for top in ("lib", "launcher", "app")])
    arguments = parser.parse_args()
    counts = {}
    for path in arguments.paths:
        path = path.resolve()
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix not in SUFFIXES:
                continue
            parts = file.relative_to(ROOT).parts
            module = "/".join(parts[:2]) if parts[0] == "lib" else parts[0]
            count = counts.setdefault(module, [0, 0])
            for line, comment in comments(file.read_text()):
                for sentence in sentences(comment):
                    is_fragment = FRAGMENT.match(sentence) is not None
                    count[0] += is_fragment
                    count[1] += 1
                    if arguments.list and is_fragment:
                        print(f"{file.relative_to(ROOT)}:{line}: {sentence}")
    if not arguments.list:
        for module, (fragments, every) in sorted(counts.items(), key=lambda item: -item[1][0] / max(1, item[1][1])):
            print(f"{module:16} {fragments:5} {every:6} {100 * fragments / max(1, every):4.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
