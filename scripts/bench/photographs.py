"""Shards of photographs for the data benchmarks, made from scikit-learn's two sample images.

    python scripts/bench/photographs.py OUT [--kind jpeg|png] [--count 1024] [--shards 4]

Every picture is another part of one of the two, in two of three cases of the one with more in it,
resized to about 500 x 375. jpeg: quality 90, 4:2:0,
56 kB each on the mean; png: the same as PNG.
"""
import argparse
import io
import pathlib
import tarfile

import numpy
from PIL import Image
from sklearn.datasets import load_sample_images

EXTENSIONS = {"jpeg": "jpg", "png": "png"}


def pictures(count, seed=1):
    random = numpy.random.default_rng(seed)
    originals = [Image.fromarray(image) for image in load_sample_images().images]  # 640 x 427
    for i in range(count):
        original = originals[i % 3 // 2]
        width = int(random.integers(470, 640))
        height = int(width * random.uniform(0.6, 0.66))
        left = int(random.integers(0, original.width - width + 1))
        top = int(random.integers(0, original.height - height + 1))
        part = original.crop((left, top, left + width, top + height))
        size = (int(random.integers(480, 521)), int(random.integers(360, 391)))
        yield part.resize(size, Image.Resampling.BICUBIC)


def encode(picture, kind):
    file = io.BytesIO()
    if kind == "png":
        picture.save(file, "PNG")
    else:
        picture.save(file, "JPEG", quality=90, subsampling="4:2:0")
    return file.getvalue()


def write_files(out, count=1024):
    """A folder of JPEGs in folders of classes, as `scaletrain data pack` takes it; left alone when it
    is there."""
    folder = pathlib.Path(out) / f"files-{count}"
    if folder.exists():
        return folder
    for i, picture in enumerate(pictures(count)):
        path = folder / f"{i % 10}" / f"{i:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(picture, "jpeg"))
    return folder


def write(out, kind="jpeg", count=1024, shards=4):
    """Paths of the shards, which are left alone when they are there."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{kind}-{count}-{i:06d}.tar" for i in range(shards)]
    if all(path.exists() for path in paths):
        return paths
    sizes = []
    tars = [tarfile.open(path, "w") for path in paths]
    for i, picture in enumerate(pictures(count)):
        tar = tars[i * shards // count]
        data = encode(picture, kind)
        sizes.append(len(data))
        for extension, content in ((EXTENSIONS[kind], data), ("cls", str(i % 1000).encode())):
            member = tarfile.TarInfo(f"{i:06d}.{extension}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    for tar in tars:
        tar.close()
    print(f"{kind}: {count} pictures of {sum(sizes) / count / 1000:.1f} kB on the mean")
    return paths


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--kind", choices=EXTENSIONS, default="jpeg")
    parser.add_argument("--count", type=int, default=1024)
    parser.add_argument("--shards", type=int, default=4)
    options = parser.parse_args()
    write(options.out, options.kind, options.count, options.shards)
