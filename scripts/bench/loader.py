"""What the loader benchmarks share: both sides over the same shards and cores, in turn.

Our side is `scaletrain data bench`, the peer webdataset with torchvision's reference transforms (PIL,
RandomResizedCrop(224) and flip, to a uint8 batch) in this interpreter, one process a core.
"""
import argparse
import json
import os
import sys
import tempfile
import time

import compare
import photographs

BATCH = 64


def options_of(doc, seconds=5):
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=1024, help="pictures")
    parser.add_argument("--seconds", type=float, default=seconds, help="of a measurement")
    parser.add_argument("--cores", default="0", help="as taskset -c: 0, or 0,1")
    parser.add_argument("--data", default=None, help="a folder that keeps the pictures")
    return parser.parse_args()


def shards(options, kind):
    folder = options.data or tempfile.mkdtemp(prefix="pictures-")
    return photographs.write(folder, kind, options.count)


def pinned(options, command, cores=None):
    return ["taskset", "-c", cores or options.cores, *command]


def ours(options, paths, cores=None):
    """The figures of `scaletrain data bench`, with a thread a core."""
    threads = len((cores or options.cores).split(","))
    return json.loads(compare.run(pinned(options, [
        compare.PROGRAMS / "scaletrain-data", "bench", "--json", "--threads", threads, "--seconds",
        options.seconds, *paths], cores)))


def peer(options, paths):
    """Images a second of the peer: a worker process a core where there are several."""
    cores = len(options.cores.split(","))
    output = compare.run(pinned(options, [
        sys.executable, __file__, options.seconds, cores if cores > 1 else 0, *paths]))
    return float(output)


def peer_main(seconds, workers, paths):
    import torch
    import webdataset
    from torchvision import transforms
    torch.set_num_threads(1)
    transform = transforms.Compose([transforms.RandomResizedCrop(224),
                                    transforms.RandomHorizontalFlip(), transforms.PILToTensor()])
    urls = [str(path) for path in paths]
    dataset = (webdataset.WebDataset(urls, shardshuffle=False, resampled=True)
               .shuffle(0).decode("pil").to_tuple("jpg;png", "cls").map_tuple(transform, int)
               .batched(BATCH))
    loader = iter(torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers))
    for _ in range(4):
        next(loader)
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        images += next(loader)[0].shape[0]
    print(images / (time.perf_counter() - start))
    sys.stdout.flush()
    os._exit(0)  # the workers' queue is not waited for


if __name__ == "__main__":
    peer_main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
