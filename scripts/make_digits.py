#!/usr/bin/env python3
"""Write scikit-learn's handwritten digits as WebDataset tar shards.

    python scripts/make_digits.py [OUT]                  OUT: the folder, default "digits"
    python scripts/make_digits.py --multi-label [OUT]    default "digits-multi-label"

1,797 grey images of 8x8 pixels, values 0..16 scaled to 0..255, stored as 8x8 PNG (the loader
resizes them to the recipe's image_size), each with its label as text:

    train-000000.tar .. train-000003.tar   1,400 samples, 350 a shard
    val-000000.tar                           200 samples
    test-000000.tar                          197 samples
    classes.json                             names of the classes by label

With --multi-label a label is a list of classes, "[8, 10, 12]": the digit, and whether it is even (10),
prime (11), and has a loop (12).

The split is stratified by a fixed seed and the bytes are the same on every run. A folder that is
complete is left alone. Nothing is downloaded: the images are part of scikit-learn.
"""

import io
import json
import os
import sys
import tarfile

SEED = 20240229
TRAIN_SHARDS = 4
SHARDS = [f"train-{i:06d}.tar" for i in range(TRAIN_SHARDS)] + ["val-000000.tar", "test-000000.tar"]
GROUPS = {"even": (0, 2, 4, 6, 8), "prime": (2, 3, 5, 7), "loop": (0, 6, 8, 9)}
CLASSES = "classes.json"  # written last: where it stands, the folder is complete


def publish(path, data):
    """Writes the file whole or not at all."""
    temporary = f"{path}.tmp.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def png(pixels):
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray((pixels * 255 / 16).round().astype("uint8")).save(stream, "PNG")
    return stream.getvalue()


def label_text(digit, multi_label):
    if not multi_label:
        return str(digit)
    groups = [10 + i for i, members in enumerate(GROUPS.values()) if digit in members]
    return json.dumps([int(digit), *groups])


def shard(digits, numbers, multi_label):
    """The bytes of a tar with the samples `numbers`; owner and time are fixed."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for number in numbers:
            label = label_text(digits.target[number], multi_label).encode()
            for extension, data in (("png", png(digits.images[number])), ("cls", label)):
                member = tarfile.TarInfo(f"{number:05d}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def make_digits(out, multi_label):
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    train, held_out = train_test_split(
        range(len(digits.target)), train_size=1400, stratify=digits.target, random_state=SEED)
    val, test = train_test_split(
        held_out, train_size=200, stratify=digits.target[held_out], random_state=SEED)
    parts = [train[i * 350:(i + 1) * 350] for i in range(TRAIN_SHARDS)] + [val, test]
    os.makedirs(out, exist_ok=True)
    for name, numbers in zip(SHARDS, parts):
        publish(os.path.join(out, name), shard(digits, numbers, multi_label))
    names = [str(name) for name in digits.target_names] + (list(GROUPS) if multi_label else [])
    publish(os.path.join(out, CLASSES), (json.dumps(names) + "\n").encode())


def main(arguments):
    multi_label = "--multi-label" in arguments
    if multi_label:
        arguments.remove("--multi-label")
    if len(arguments) > 1 or any(a.startswith("-") for a in arguments):
        print(__doc__, end="")
        return 0 if arguments in (["-h"], ["--help"]) else 2
    out = arguments[0] if arguments else "digits-multi-label" if multi_label else "digits"
    if not all(os.path.isfile(os.path.join(out, name)) for name in SHARDS + [CLASSES]):
        make_digits(out, multi_label)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
