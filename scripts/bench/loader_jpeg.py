"""Training images a second from JPEG shards: ours against webdataset with torchvision, and against a
bare libjpeg-turbo loop that decodes the same crops and does nothing else.

    python scripts/bench/loader_jpeg.py [--rounds 5] [--cores 0] [--data FOLDER]
"""
import compare
import loader


def main():
    options = loader.options_of(__doc__)
    paths = loader.shards(options, "jpeg")

    def bare():
        return float(compare.run(loader.pinned(options, [
            compare.PROGRAMS / "jpeg_loop", options.seconds, *paths])))

    sides = {"ours": lambda: loader.ours(options, paths)["loader"],
             "peer": lambda: loader.peer(options, paths)}
    if "," not in options.cores:  # the loop has one thread
        sides["bare"] = bare
    median = compare.in_turn(sides, options.rounds)
    more = {"of_bare": median["ours"] / median["bare"]} if "bare" in median else {}
    compare.report("loader_jpeg", **median, **more, ratio=median["ours"] / median["peer"])


if __name__ == "__main__":
    main()
