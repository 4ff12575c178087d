"""Random resized crops of 224 a second from pictures whose shorter side `scaletrain data pack` made
256: JPEG of quality 90, and raw pixels. FFCV's published rates for one physical core are 650 (JPEG of
512 pixels) and 3,600 (raw, 256 pixels).

    python scripts/bench/packed.py [--rounds 5] [--cores 0] [--data FOLDER]
"""
import pathlib
import tempfile

import compare
import loader
import photographs

ENCODINGS = {"jpeg": "jpeg:90", "raw": "raw"}
FFCV = {"jpeg": 650, "raw": 3600}


def pack(folder, kind, count):
    out = folder / f"packed-{kind}-{count}"
    if not out.exists():
        compare.run([compare.PROGRAMS / "scaletrain-data", "pack",
                     photographs.write_files(folder, count), out, "--resize", 256, "--reencode",
                     ENCODINGS[kind]])
    return sorted(out.glob("*.tar"))


def main():
    options = loader.options_of(__doc__, seconds=3)
    folder = pathlib.Path(options.data or tempfile.mkdtemp(prefix="pictures-"))
    paths = {kind: pack(folder, kind, options.count) for kind in ENCODINGS}
    median = compare.in_turn({kind: lambda kind=kind: loader.ours(options, paths[kind])["loader"]
                              for kind in ENCODINGS}, options.rounds)
    cores = len(options.cores.split(","))
    for kind, rate in median.items():
        compare.report(f"packed_{kind}", rate / cores, FFCV[kind], rate / cores / FFCV[kind])


if __name__ == "__main__":
    main()
