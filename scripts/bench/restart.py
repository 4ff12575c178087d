"""Seconds from the exit of a failing worker to the start of the last new one: ours against torchrun.

    python scripts/bench/restart.py [--rounds 5]

Two workers that do nothing else; rank 1 fails in the first attempt, rank 0 has to be stopped.
"""
import argparse
import pathlib
import tempfile

import compare

WORKER = """
cd "$0"
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then
  [ $RANK = 0 ] && { touch waiting; exec sleep 1000; }
  while [ ! -e waiting ]; do sleep 0.01; done
  echo $EPOCHREALTIME >failed
  exit 3
fi
echo $EPOCHREALTIME >started$RANK
"""


def seconds(command):
    with tempfile.TemporaryDirectory() as folder:
        compare.run(command + ["bash", "-c", WORKER, folder])
        times = {path.name: float(path.read_text(encoding="utf-8"))
                 for path in pathlib.Path(folder).iterdir() if path.name != "waiting"}
        return max(times["started0"], times["started1"]) - times["failed"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ours = [compare.PROGRAMS / "scaletrain", "launch", "--nproc", 2, "--max-restarts", 1, "--"]
    peer = [compare.TORCHRUN, "--nproc-per-node", 2, "--max-restarts", 1, "--no-python"]
    result = compare.in_turn({"ours": lambda: seconds(ours), "peer": lambda: seconds(peer)},
                             options.rounds)
    compare.report("restart", **result, ratio=result["peer"] / result["ours"])


if __name__ == "__main__":
    main()
