"""Training images a second from PNG shards: ours against webdataset with torchvision.

    python scripts/bench/loader_png.py [--rounds 5] [--cores 0] [--data FOLDER]
"""
import compare
import loader


def main():
    options = loader.options_of(__doc__)
    options.count = min(options.count, 256)
    paths = loader.shards(options, "png")
    median = compare.in_turn({"ours": lambda: loader.ours(options, paths)["loader"],
                              "peer": lambda: loader.peer(options, paths)}, options.rounds)
    compare.report("loader_png", **median, ratio=median["ours"] / median["peer"])


if __name__ == "__main__":
    main()
