#!/usr/bin/env python3
"""The settings that `scaletrain data advise` finds against the best hand setting, on twelve set-ups.

    scripts/bench/loader_advisor.py [--seconds 2] [--most 30] [--only NAME]

Set-ups differ in image size, codec, cores (by taskset) and latency of the store (a local server that waits before each
answer). For each, `data bench` measures every number of threads of a list, then `data advise` searches for at most
--most seconds, and both the best of the list and the setting that was found are measured three times in turn. Prints
the ratio of the medians: 0.95 or more is the aim.
"""
import argparse
import http.server
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/bin/scaletrain"
HAND = (1, 2, 3, 4, 8, 16)

# name, size of the stored pictures, codec, size of the model's input, cores, seconds of latency
SETUPS = [(f"{size} {codec} to {image_size}, {cores} cores, {1000 * latency:.0f} ms", size, codec, image_size, cores,
           latency)
          for size, codec, image_size, cores, latency in (
              ("64x64", "jpeg:90", 64, 1, 0), ("64x64", "jpeg:90", 64, 2, 0), ("500x375", "jpeg:90", 224, 1, 0),
              ("500x375", "jpeg:90", 224, 2, 0), ("256x256", "png", 224, 1, 0), ("256x256", "png", 224, 2, 0),
              ("256x256", "raw", 224, 1, 0), ("256x256", "raw", 224, 2, 0), ("96x96", "raw", 32, 2, 0),
              ("64x64", "jpeg:90", 64, 2, 0.005), ("256x256", "jpeg:90", 224, 2, 0.02), ("64x64", "png", 64, 1, 0.02))]


class SlowStore(http.server.BaseHTTPRequestHandler):
    """Byte ranges of the files of a folder, each answer after `latency` seconds."""
    protocol_version = "HTTP/1.1"
    folder, latency = "", 0.0

    def answer(self, with_body):
        path = os.path.join(self.folder, self.path.lstrip("/"))
        if not os.path.isfile(path):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        size = os.path.getsize(path)
        begin, end = 0, size - 1
        wanted = self.headers.get("Range")
        if wanted:
            first, last = wanted.split("=")[1].split("-")
            begin, end = int(first), min(int(last) if last else size - 1, size - 1)
        time.sleep(self.latency)
        self.send_response(206 if wanted else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{size}"')
        if wanted:
            self.send_header("Content-Range", f"bytes {begin}-{end}/{size}")
        self.send_header("Content-Length", str(end - begin + 1))
        self.end_headers()
        if with_body:
            with open(path, "rb") as file:
                file.seek(begin)
                self.wfile.write(file.read(end - begin + 1))

    def do_GET(self):  # pylint: disable=invalid-name
        self.answer(True)

    def do_HEAD(self):  # pylint: disable=invalid-name
        self.answer(False)

    def log_message(self, *arguments):  # pylint: disable=arguments-differ
        pass


def data(*arguments, cores=None):
    command = [PROGRAM, "data", *map(str, arguments)]
    if cores is not None:
        command = ["taskset", "-c", ",".join(str(core) for core in range(cores)), *command]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_recipe(folder, shards, image_size, prefetch):
    path = folder / f"recipe-{prefetch}.json"
    path.write_text(json.dumps({
        "model": {"name": "mlp", "num_classes": 4}, "steps": 1, "optimizer": {"name": "sgd", "lr": 0.1},
        "data": {"train": {"shards": shards, "augment": ["random_resized_crop", "random_flip"]},
                 "image_size": image_size, "prefetch": prefetch}}))
    return path


def rate(recipe, threads, seconds, cores):
    return json.loads(data("bench", recipe, "--threads", threads, "--seconds", seconds, "--json", cores=cores))["loader"]


def measure(folder, setup, options):
    name, size, codec, image_size, cores, latency = setup
    data("synth", folder / "drawn", "--samples", 256, "--classes", 4, "--size", size, "--encoding", codec,
         "--samples-per-shard", 64)
    shards = sorted((folder / "drawn").glob("*.tar"))
    server = None
    if latency > 0:
        data("index", *shards)
        handler = type("Handler", (SlowStore,), {"folder": str(shards[0].parent), "latency": latency})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        shards = [f"http://127.0.0.1:{server.server_port}/{shard.name}" for shard in shards]
    shards = [str(shard) for shard in shards]
    recipe = write_recipe(folder, shards, image_size, 4)
    by_hand = {threads: rate(recipe, threads, options.seconds, cores) for threads in HAND}
    best = max(by_hand, key=by_hand.get)
    begin = time.monotonic()
    found = json.loads(data("advise", recipe, "--seconds", options.most, "--json", cores=cores))
    took_s = time.monotonic() - begin
    found_recipe = write_recipe(folder, shards, image_size, found["prefetch"])
    pairs = [(rate(recipe, best, options.seconds, cores), rate(found_recipe, found["threads"], options.seconds, cores))
             for _ in range(3)]
    hand, advised = (statistics.median(values) for values in zip(*pairs))
    if server is not None:
        server.shutdown()
    print(f"| {name} | {best} | {hand:.0f} | {found['threads']} | {found['prefetch']} | {advised:.0f} | "
          f"{advised / hand:.3f} | {took_s:.0f} | {found['limit']} |", flush=True)
    return advised / hand


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--most", type=float, default=30)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| set-up | best threads by hand | images/s | threads found | prefetch | images/s | ratio | s | limit |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for setup in SETUPS:
        if options.only in setup[0]:
            with tempfile.TemporaryDirectory() as folder:
                ratios.append(measure(pathlib.Path(folder), setup, options))
    print(f"\nlowest ratio {min(ratios):.3f} of {len(ratios)} set-ups")


if __name__ == "__main__":
    main()
