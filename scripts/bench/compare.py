"""What the benchmarks share: sides in turn, medians, one JSON line."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ROOT / "build/release/bin"))
TORCHRUN = pathlib.Path(sys.executable).parent / "torchrun"
LIMIT_S = 600


def run(command, limit_s=LIMIT_S):
    """Standard output of a command in the root of the repository; its errors end the benchmark."""
    done = subprocess.run([str(part) for part in command], cwd=ROOT, timeout=limit_s,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def in_turn(sides, rounds):
    """Median of each side's numbers. sides: name -> function; ABAB, a first round is not counted."""
    numbers = {name: [] for name in sides}
    for _ in range(rounds + 1):
        for name, measure in sides.items():
            numbers[name].append(measure())
            print(f"{name}: {numbers[name][-1]:.4g}", file=sys.stderr)
    return {name: statistics.median(values[1:]) for name, values in numbers.items()}


def report(name, ours, peer, ratio, **more):
    """`ratio` says how many times better ours is."""
    rounded = {key: float(f"{value:.4g}")
               for key, value in {"ours": ours, "peer": peer, "ratio": ratio, **more}.items()}
    print(json.dumps({"name": name, **rounded}))


def train_lines(run_folder):
    """The train lines of a run's metrics.jsonl."""
    with open(run_folder / "metrics.jsonl", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [record for record in records if record["event"] == "train"]
