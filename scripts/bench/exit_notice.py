"""Seconds from a worker's end to what the launcher does about it: ours against torchrun.

    python scripts/bench/exit_notice.py [--rounds 10]

Two lines: `exit_notice` is the time from the last thing that the only worker does to the end of the
launcher (so it holds the end of two processes too), `death_to_sigterm` the time from a worker's
SIGKILL to the other worker's SIGTERM handler.
"""
import argparse
import pathlib
import subprocess
import tempfile
import time

import compare

ENDS = "cd \"$0\"; echo $EPOCHREALTIME >ended"
DIES = """
cd "$0"
if [ $RANK = 0 ]; then
  trap 'echo $EPOCHREALTIME >heard; exit 0' TERM
  touch ready
  sleep 1000 & wait
fi
while [ ! -e ready ]; do sleep 0.01; done
sleep 0.3
echo $EPOCHREALTIME >died
kill -KILL $$
"""


def moment(folder, name):
    return float((pathlib.Path(folder) / name).read_text(encoding="utf-8"))


def exit_notice(launcher):
    with tempfile.TemporaryDirectory() as folder:
        compare.run([*launcher(1), "bash", "-c", ENDS, folder])
        return time.time() - moment(folder, "ended")


def death_to_sigterm(launcher):
    with tempfile.TemporaryDirectory() as folder:
        command = [str(part) for part in [*launcher(2), "bash", "-c", DIES, folder]]
        subprocess.run(command, cwd=compare.ROOT, timeout=compare.LIMIT_S, capture_output=True,
                       check=False)
        return moment(folder, "heard") - moment(folder, "died")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()

    def ours(nproc):
        return [compare.PROGRAMS / "scaletrain", "launch", "--nproc", nproc, "--"]

    def peer(nproc):
        return [compare.TORCHRUN, "--nproc-per-node", nproc, "--no-python"]

    for measure in (exit_notice, death_to_sigterm):
        result = compare.in_turn({"ours": lambda m=measure: m(ours),
                                  "peer": lambda m=measure: m(peer)}, options.rounds)
        compare.report(measure.__name__, **result, ratio=result["peer"] / result["ours"])


if __name__ == "__main__":
    main()
