"""Peak resident megabytes of the launcher while two workers run: ours against torchrun.

    python scripts/bench/launcher_memory.py [--rounds 3]
"""
import argparse
import pathlib
import re
import subprocess
import tempfile
import time

import compare

WORKER = ["sh", "-c", "touch ready$RANK; exec sleep 1000"]


def megabytes(command):
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([str(part) for part in command + WORKER], cwd=folder)
        try:
            deadline = time.monotonic() + compare.LIMIT_S
            while len(list(pathlib.Path(folder).glob("ready*"))) < 2:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{command[0]}: the workers did not start")
                time.sleep(0.01)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1000
        finally:
            process.terminate()
            process.wait(compare.LIMIT_S)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours = [compare.PROGRAMS / "scaletrain", "launch", "--nproc", 2, "--"]
    peer = [compare.TORCHRUN, "--nproc-per-node", 2, "--no-python"]
    result = compare.in_turn({"ours": lambda: megabytes(ours), "peer": lambda: megabytes(peer)},
                             options.rounds)
    compare.report("launcher_memory", **result, ratio=result["peer"] / result["ours"])


if __name__ == "__main__":
    main()
