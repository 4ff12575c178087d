"""Training samples/s on the digits: ours against PyTorch DDP with the same model and batch.

    python scripts/bench/train_digits.py [--rounds 3] [--nproc 2] [--precision fp32]

ResNet-18 at 32x32, AdamW, 32 samples a rank, one thread a rank, decoding included. The first epoch
is not counted. "peer" is PyTorch's ordinary AdamW, "peer_fused" AdamW(fused=True).
"""
import argparse
import json
import pathlib
import tempfile

import compare

TRAIN_SAMPLES = 1400
PER_DEVICE = 32
EPOCHS = 4


def ours(folder, options):
    run_folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", options.nproc,
                 "--set", f"output={run_folder}", "--set", f"precision={options.precision}",
                 "--set", f"batch.per_device={PER_DEVICE}", "--set", f"epochs={EPOCHS}",
                 "--set", "threads=1", "--set", f"validate.every.epochs={EPOCHS}",
                 "--set", f"checkpoint.every.epochs={EPOCHS}", "recipes/digits_resnet18.json"])
    lines = [line for line in compare.train_lines(run_folder) if line["epoch"] > 0]
    first, last = lines[0], lines[-1]
    return (last["samples"] - first["samples"]) / (last["time"] - first["time"])


def peer(options, *flags):
    steps_per_epoch = TRAIN_SAMPLES // (PER_DEVICE * options.nproc)
    output = compare.run([compare.TORCHRUN, "--nproc-per-node", options.nproc,
                          "scripts/bench/peer_ddp.py", "--shards", "digits",
                          "--steps", EPOCHS * steps_per_epoch, "--batch", PER_DEVICE,
                          "--precision", options.precision, *flags])
    times = json.loads(output)["times"][steps_per_epoch:]
    return (len(times) - 1) * PER_DEVICE * options.nproc / (times[-1] - times[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        median = compare.in_turn({"ours": lambda: ours(folder, options),
                                  "peer": lambda: peer(options),
                                  "peer_fused": lambda: peer(options, "--fused")}, options.rounds)
    compare.report("train_digits", **median, ratio=median["ours"] / median["peer"],
                   ratio_fused=median["ours"] / median["peer_fused"])


if __name__ == "__main__":
    main()
