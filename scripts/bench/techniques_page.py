"""Writes the tables of docs/techniques.md: what scripts/bench/techniques.sh has measured.

    python scripts/bench/techniques_page.py FOLDER PAGE

FOLDER has NAME.memory.json and NAME.speed.json, as `scaletrain bench --json` prints them. What stands
in PAGE between the two markers is replaced.
"""
import json
import os
import pathlib
import sys

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
MEGA = 1e6


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "an unnamed CPU"


def rows(memory, speed):
    speeds = {cost["technique"]: cost for cost in speed["costs"]}
    for cost in memory["costs"]:
        other = speeds.get(cost["technique"], {})
        if "peak_bytes" not in cost or "step_s" not in other:
            yield f"| {cost['technique']} | does not run | | | | |"
            continue
        used = cost["peak_bytes"]
        yield (f"| {cost['technique']} | {used['total'] / MEGA:.1f} "
               f"| {used['activations'] / MEGA:.1f} | {cost['times']:.2f} "
               f"| {1 / other['step_s']:.2f} | {other['times']:.2f} |")


def table(memory, speed):
    ranks = memory["ranks"]
    return "\n".join([
        f"`{memory['recipe']}`, {memory['global_batch']} samples a step, "
        f"{ranks} rank{'s' if ranks > 1 else ''}:", "",
        "| technique | peak MB | of it activations | times less | steps a second | times faster |",
        "|---|---|---|---|---|---|", *rows(memory, speed), ""])


def main():
    folder, page = map(pathlib.Path, sys.argv[1:])
    parts = [f"Measured on {os.cpu_count()} cores of {cpu()}.\n"]
    for path in sorted(folder.glob("*.memory.json")):
        name = path.name.removesuffix(".memory.json")
        parts.append(table(json.loads(path.read_text()),
                           json.loads((folder / f"{name}.speed.json").read_text())))
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after)


if __name__ == "__main__":
    main()
