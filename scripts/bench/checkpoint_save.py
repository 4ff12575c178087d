"""Seconds of a checkpoint of 1 GB: ours against torch.save followed by fsync.

    python scripts/bench/checkpoint_save.py [--bytes 1e9] [--tensors 161] [--rounds 3] [--folder F]

of many small ones with --tensors 65536.

Ours: until it is durable (copied, hashed, synced, published), that of it training waits, and until one
is loaded, of what the disk has and of what is in memory; kept_rate is the rate at which a thread computes beside a write.
Peers: torch.save and safetensors' save_file, each followed by fsync, safetensors' load_file with
copies to a model's tensors, and a plain writer of one file.
"""
import argparse
import json
import pathlib
import tempfile

import compare

REPEATS = 3  # of each side in a process


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--tensors", type=int, default=161)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", help="on the disk that is measured")
    options = parser.parse_args()
    found = {"ours": [], "peer": []}

    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        arguments = [pathlib.Path(name), int(options.bytes), options.tensors, REPEATS]

        def measure(side, command):
            times = json.loads(compare.run([*command, *arguments]))
            found[side].append(times)
            return times["save_s"]

        compare.in_turn({
            "ours": lambda: measure("ours", [compare.PROGRAMS / "save_loop"]),
            "peer": lambda: measure("peer", [compare.TORCHRUN.parent / "python",
                                             "scripts/bench/peer_checkpoint.py"])}, options.rounds)

    def median(side, key):
        values = sorted(times[key] for times in found[side][1:])
        return values[len(values) // 2]

    what = f"checkpoint of {options.bytes:g} bytes in {options.tensors} tensors"
    save, peer = median("ours", "save_s"), median("peer", "save_s")
    raw, safe = median("ours", "raw_s"), median("peer", "safetensors_s")
    compare.report(f"{what}, durable", ours=save, peer=peer, ratio=peer / save, safetensors=safe,
                   ratio_safetensors=safe / save, raw=raw, ratio_raw=raw / save,
                   remove=median("ours", "remove_s"))
    stall = median("ours", "stall_s")
    compare.report(f"{what}, training waits", ours=stall, peer=peer, ratio=peer / stall,
                   kept_rate=median("ours", "kept_rate"))
    for key, how in ("cold_load_s", "loaded from the disk"), ("load_s", "loaded from memory"):
        load, peer_load = median("ours", key), median("peer", key)
        compare.report(f"{what}, {how}", ours=load, peer=peer_load, ratio=peer_load / load)
    peak, peer_peak = median("ours", "peak_bytes"), median("peer", "peak_bytes")
    compare.report(f"{what}, most memory in MB", ours=peak / 1e6, peer=peer_peak / 1e6,
                   ratio=peer_peak / peak)


if __name__ == "__main__":
    main()
