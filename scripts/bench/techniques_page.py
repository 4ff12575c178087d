"""Writes the tables of docs/lab/techniques.md, what scripts/bench/techniques.sh has measured, and a recipe for
each of their rows.

    python scripts/bench/techniques_page.py FOLDER PAGE RECIPES

FOLDER has NAME.RANKS.memory.json and NAME.RANKS.speed.json, as `scaletrain bench --json` prints them.
What stands in PAGE between the two markers is replaced; the row of a technique is
RECIPES/NAME/TECHNIQUE.json, which extends RECIPES/NAME.json.
"""
import json
import os
import pathlib
import re
import sys

BEGIN, END = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
MEGA = 1e6


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "an unnamed CPU"


def write_recipe(base, cost, ranks):
    """Writes the recipe of a row, of what is measured with several numbers of ranks by the first; its file."""
    if not cost["set"]:
        return base
    changes = {"extends": f"../{base.name}"}
    for key, value in (change.split("=", 1) for change in cost["set"]):
        *parts, last = key.split(".")
        inner = changes
        for part in parts:
            if not isinstance(inner.get(part), dict):
                inner[part] = {}
            inner = inner[part]
        try:
            inner[last] = json.loads(value)
        except json.JSONDecodeError:
            inner[last] = value
    changes["output"] = f"runs/techniques/{base.stem}"
    name = re.sub(r"to \d+ MB", "to a budget", cost["technique"])
    file = base.with_suffix("") / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".json")
    if ranks > 1 and file.exists():
        return file
    file.parent.mkdir(exist_ok=True)
    described = {"description": f"The row \"{cost['technique']}\" of docs/lab/techniques.md.", **changes}
    file.write_text(json.dumps({k: v for k, v in described.items() if v is not None}, indent=2) + "\n")
    return file


def rows(memory, speed, base, page):
    speeds = {cost["technique"]: cost for cost in speed["costs"]}
    for cost in memory["costs"]:
        other = speeds.get(cost["technique"], {})
        recipe = os.path.relpath(write_recipe(base, cost, memory["ranks"]), page.parent)
        name = f"[{cost['technique']}]({recipe})"
        if "peak_bytes" not in cost or "step_s" not in other:
            yield f"| {name} | does not run | | | | |"
            continue
        used = cost["peak_bytes"]
        yield (f"| {name} | {used['total'] / MEGA:.1f} "
               f"| {used['activations'] / MEGA:.1f} | {cost['times']:.2f} "
               f"| {1 / other['step_s']:.2f} | {other['times']:.2f} |")


def table(memory, speed, base, page):
    ranks = memory["ranks"]
    return "\n".join([
        f"`{memory['recipe']}`, {memory['global_batch']} samples a step, "
        f"{ranks} rank{'s' if ranks > 1 else ''}:", "",
        "| technique | peak MB | activations, MB | times less | steps a second | times faster |",
        "|---|---|---|---|---|---|", *rows(memory, speed, base, page), ""])


def main():
    folder, page, recipes = map(pathlib.Path, sys.argv[1:])
    parts = [f"Measured on {os.cpu_count()} cores of {cpu()}.\n"]
    for path in sorted(folder.glob("*.memory.json")):
        measured = path.name.removesuffix(".memory.json")
        parts.append(table(json.loads(path.read_text()),
                           json.loads((folder / f"{measured}.speed.json").read_text()),
                           recipes / f"{measured.split('.')[0]}.json", page))
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(before + BEGIN + "\n" + "\n".join(parts) + "\n" + END + after)


if __name__ == "__main__":
    main()
