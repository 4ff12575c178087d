"""Random resized crops of 224 a second from pictures whose shorter side is 256, as `scaletrain data
pack` makes them: JPEG of quality 90, and raw pixels. FFCV's published rates for one physical core are
650 (JPEG of 512 pixels) and 3,600 (raw, 256 pixels).

    python scripts/bench/packed.py [--rounds 5] [--cores 0] [--data FOLDER]
"""
import compare
import loader

FFCV = {"small": 650, "raw": 3600}


def main():
    options = loader.options_of(__doc__, seconds=3)
    paths = {kind: loader.shards(options, kind) for kind in FFCV}
    median = compare.in_turn({kind: lambda kind=kind: loader.ours(options, paths[kind])["loader"]
                              for kind in FFCV}, options.rounds)
    cores = len(options.cores.split(","))
    for kind, name in (("small", "packed_jpeg"), ("raw", "packed_raw")):
        compare.report(name, median[kind] / cores, FFCV[kind], median[kind] / cores / FFCV[kind])


if __name__ == "__main__":
    main()
