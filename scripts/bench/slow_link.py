"""How many times faster a step is with cheaper and rarer exchanges, over a link of 100 MB a second.

    python scripts/bench/slow_link.py [--mb-per-s 100] [--rounds 3] [--steps 12]

Two nodes of one rank are two network namespaces; `tc` slows what each of them sends (tbf). It needs
root, iproute2 and a kernel with sch_tbf, and says so where something of it is missing.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import compare
import cpu_models

PORT = 29541
WARMUP = 3
MODEL = {"name": "gpt2", "positions": 64, "vocab_size": 257, "dim": 384, "depth": 6, "heads": 6,
         "dropout": 0.0}
DILOCO = {"name": "diloco", "steps": 4}
EXCHANGES = {"fp32": {}, "bf16": {"compress": "bf16"},
             "powersgd": {"compress": {"name": "powersgd", "rank": 4, "warmup": 0}},
             "diloco": {"sync": DILOCO}, "overlap": {"sync": {**DILOCO, "overlap": 3}}}


def tool(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


@contextlib.contextmanager
def slow_hosts(mb_per_s):
    """The names of two hosts that a wire joins, each sending at most so much."""
    names = [f"slow{os.getpid()}-{i}" for i in range(2)]
    with contextlib.ExitStack() as ends:
        for name in names:
            tool("ip", "netns", "add", name)
            ends.callback(tool, "ip", "netns", "delete", name)
        tool("ip", "-n", names[0], "link", "add", "wire", "type", "veth", "peer", "name", "wire",
             "netns", names[1])
        for i, name in enumerate(names):
            tool("ip", "-n", name, "address", "add", f"10.99.79.{i + 1}/24", "dev", "wire")
            tool("ip", "-n", name, "link", "set", "wire", "up")
            tool("ip", "-n", name, "link", "set", "lo", "up")
            tool("tc", "-n", name, "qdisc", "add", "dev", "wire", "root", "tbf", "rate",
                 f"{8 * mb_per_s}mbit", "burst", "256kb", "latency", "100ms")
        yield names


def samples_per_s(names, folder, exchange, steps):
    batch = 2
    run = pathlib.Path(tempfile.mkdtemp(dir=folder))
    recipe = run / "recipe.json"
    recipe.write_text(json.dumps({
        "model": MODEL, "data": {"train": {"tokens": cpu_models.write_tokens(folder / "tokens")}},
        "batch": {"per_device": batch}, "steps": WARMUP + steps, "threads": 1,
        **exchange, "optimizer": {"name": "adamw", "lr": 0.001}, "log": {"every": {"steps": 1}},
        "output": str(run / "run")}))
    nodes = [subprocess.Popen(
        ["ip", "netns", "exec", name, str(compare.PROGRAMS / "scaletrain"), "launch", "--nnodes",
         "2", "--node-rank", str(i), "--nproc", "1", "--master-addr", "10.99.79.1", "--master-port",
         str(PORT), str(recipe)], cwd=compare.ROOT, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "wire"}) for i, name in enumerate(names)]
    for node in nodes:
        _, errors = node.communicate(timeout=compare.LIMIT_S)
        if node.returncode != 0:
            sys.exit(f"a node: exit {node.returncode}\n{errors[-4000:]}")
    lines = compare.train_lines(run / "run")[WARMUP - 1:]
    return 2 * batch * steps / (lines[-1]["time"] - lines[0]["time"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb-per-s", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        print(f"skipped: needs root{' and ' + ' and '.join(missing) if missing else ''}")
        return
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as ends:
        folder = pathlib.Path(made)
        try:
            names = ends.enter_context(slow_hosts(options.mb_per_s))
        except RuntimeError as error:
            print(f"skipped: {error}")
            return
        median = compare.in_turn(
            {name: lambda exchange=exchange: samples_per_s(names, folder, exchange, options.steps)
             for name, exchange in EXCHANGES.items()}, options.rounds)
    for name in list(EXCHANGES)[1:]:
        compare.report(f"slow_link {name} {options.mb_per_s}_MB_per_s", ours=median[name],
                       peer=median["fp32"], ratio=median[name] / median["fp32"])


if __name__ == "__main__":
    main()
