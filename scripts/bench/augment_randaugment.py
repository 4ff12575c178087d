"""RandAugment (2 operations, magnitude 9, nearest) on decoded images of 224 x 224 a second, one core:
ours against torchvision's transforms.v2 on uint8 tensors and on PIL images, the faster of them.

    python scripts/bench/augment_randaugment.py [--rounds 5] [--cores 0] [--data FOLDER]
"""
import json
import pathlib
import sys
import tempfile
import time

import compare
import loader

SIZE = 224


def recipe(folder, paths):
    path = pathlib.Path(folder) / "recipe.json"
    path.write_text(json.dumps({
        "model": {"name": "mlp", "num_classes": 1000},
        "data": {"train": {"shards": [str(shard) for shard in paths],
                           "augment": ["random_resized_crop", "rand_augment"]},
                 "image_size": SIZE},
        "optimizer": {"name": "sgd", "lr": 0.1}, "epochs": 1}), encoding="utf-8")
    return path


def peer_main(kind, seconds, path):
    """Images a second of one of torchvision's two backends."""
    import torch
    import webdataset
    from torchvision.transforms import v2
    torch.set_num_threads(1)
    crop = v2.RandomResizedCrop(SIZE, antialias=True)
    images = [crop(sample["jpg"]) for _, sample in
              zip(range(64), webdataset.WebDataset(path, shardshuffle=False).decode("pil"))]
    if kind == "tensor":
        images = [v2.functional.pil_to_tensor(image) for image in images]
    transform = v2.RandAugment()
    count, spent, start = 0, 0.0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        transform(images[count % len(images)])
        spent += time.perf_counter() - begin
        count += 1
    print(count / spent)


def main():
    options = loader.options_of(__doc__)
    paths = loader.shards(options, "jpeg")

    def peer(kind):
        return float(compare.run(loader.pinned(options, [
            sys.executable, __file__, "--peer", kind, options.seconds, paths[0]])))

    with tempfile.TemporaryDirectory() as folder:
        config = recipe(folder, paths)
        median = compare.in_turn({"ours": lambda: loader.ours(options, [config])["augment"],
                                  "tensor": lambda: peer("tensor"), "pil": lambda: peer("pil")},
                                 options.rounds)
    faster = max(median["tensor"], median["pil"])
    compare.report("augment_randaugment", median["ours"], faster, median["ours"] / faster,
                   tensor=median["tensor"], pil=median["pil"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer_main(sys.argv[2], float(sys.argv[3]), sys.argv[4])
    else:
        main()
