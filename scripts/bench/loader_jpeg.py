"""Training images a second from JPEG shards: ours against webdataset with torchvision, and against a
bare libjpeg-turbo loop that decodes the same crops and does nothing else ("of_bare"). "two_threads" is
ours on two cores, "scaling" how many times one thread's rate that is.

    python scripts/bench/loader_jpeg.py [--rounds 5] [--cores 0] [--data FOLDER]
"""
import os

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
    cores = sorted(os.sched_getaffinity(0))
    if "," not in options.cores:  # the loop has one thread
        sides["bare"] = bare
        if len(cores) > 1:
            sides["two_threads"] = lambda: loader.ours(
                options, paths, f"{cores[0]},{cores[1]}")["loader"]
    median = compare.in_turn(sides, options.rounds)
    more = {}
    if "bare" in median:
        more["of_bare"] = median["ours"] / median["bare"]
    if "two_threads" in median:
        more["scaling"] = median["two_threads"] / median["ours"]
    compare.report("loader_jpeg", **median, **more, ratio=median["ours"] / median["peer"])


if __name__ == "__main__":
    main()
