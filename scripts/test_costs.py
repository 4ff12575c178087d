#!/usr/bin/env python3
"""Write the cost table of scripts/test.sh as Markdown: stages, compile steps and tests, sorted.

    scripts/test_costs.py [--top N] [BUILD]    BUILD: the folder of the presets, default "build"

Reads what the last scripts/test.sh left: BUILD/stages.tsv (wall seconds of each stage),
BUILD/PRESET/.ninja_log (start and end of each step) and BUILD/PRESET/tests.xml (ctest's JUnit
output, in which each test ends with its CPU seconds). The log has wall times only: where more steps
ran than there are cores, a step is charged its share of the cores. Steps that ccache answered are as
short as they were; CCACHE_RECACHE=1 scripts/test.sh compiles everything.
"""

import argparse
import collections
import os
import pathlib
import platform
import re
import sys
import xml.etree.ElementTree

PRESETS = ["release", "tidy", "tsan"]
CPU = re.compile(r"^cpu_s: ([0-9.]+)$", re.MULTILINE)


def intervals(lines):
    """{output: (begin, end)} in seconds: a step ends when its output was written, which the log notes in
    nanoseconds. The log's own times begin at 0 in each run, and its lines lose their order."""
    found = {}
    for line in lines:
        start, end, written_ns, output, *_ = (line + "\t\t\t").split("\t")
        if line.startswith("#") or output.startswith("/"):  # the second name of a relative output
            continue
        if int(written_ns) > 0:
            written = int(written_ns) / 1e9
            found[output] = (written - (float(end) - float(start)) / 1000, written)
    return found


def shares(steps, cores):
    """{output: seconds of one core} of {output: (begin, end)}."""
    moments = sorted({time for step in steps.values() for time in step})
    seconds = collections.Counter()
    for begin, end in zip(moments, moments[1:]):
        running = [name for name, (start, stop) in steps.items() if start <= begin and stop >= end]
        for name in running:
            seconds[name] += (end - begin) * min(1.0, cores / len(running))
    return seconds


def steps(log, cores):
    """{output: seconds of one core} of a preset; outputs that build.ninja no longer has are left out."""
    costs = shares(intervals(log.read_text().splitlines()), cores)
    rules = log.with_name("build.ninja").read_text()
    known = {name for names in re.findall(r"^build ([^:|]+)", rules, re.MULTILINE)
             for name in names.split()}
    return {name: seconds for name, seconds in costs.items() if name in known}


def test_seconds(junit):
    """{test: (CPU seconds or None, wall seconds)} of ctest's JUnit file; skipped tests left out."""
    found = {}
    for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue
        cpu = CPU.findall(case.findtext("system-out") or "")
        found[case.get("name")] = (float(cpu[-1]) if cpu else None, float(case.get("time")))
    return found


def place(output):
    """What a step belongs to: "lib/nn", "tests/train", "launcher"; by the folder of its object."""
    target = re.search(r"CMakeFiles/(\w[\w-]*)\.dir/", output)
    if target and target[1].startswith("test_"):
        return f"tests/{target[1].removeprefix('test_')}"
    parts = output.split("/")
    return "/".join(parts[:2]) if parts[0] in ("lib", "third_party") else parts[0]


def short(output):
    return re.sub(r"CMakeFiles/(\w[\w-]*)\.dir/", r"\1: ", output)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def totals(costs, key):
    sums = collections.Counter()
    for name, seconds in costs.items():
        sums[key(name)] += seconds
    return sums.most_common()


def processor():
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else platform.machine()


def report(build, top, cores):
    print("# Build and test costs\n")
    print("Made by `scripts/test_costs.py > docs/lab/test-costs.md` after `scripts/test.sh`, on"
          f" {cores} cores of {processor()}. CPU seconds, largest first. A compile step has the time of"
          " the newest build that ran it: of a few seconds where ccache had the result.\n")
    stages = build / "stages.tsv"
    if stages.exists():
        rows = [line.split("\t") for line in stages.read_text().splitlines()]
        print("## Stages of `scripts/test.sh`\n")
        print(table(["stage", "wall seconds"], [*rows, ["all", sum(int(row[1]) for row in rows)]]))
    for preset in PRESETS:
        log = build / preset / ".ninja_log"
        if not log.exists():
            continue
        costs = steps(log, cores)
        print(f"## Compile steps of the preset `{preset}`\n")
        print(f"{len(costs)} steps, {sum(costs.values()):.0f} CPU seconds.\n")
        print(table(["folder", "CPU seconds"],
                    [(name, f"{s:.0f}") for name, s in totals(costs, place) if s >= 1]))
        largest = sorted(costs.items(), key=lambda item: -item[1])[:top]
        print(table(["step", "CPU seconds"], [(f"`{short(n)}`", f"{s:.0f}") for n, s in largest]))
    for preset in PRESETS:
        junit = build / preset / "tests.xml"
        if not junit.exists():
            continue
        found = test_seconds(junit)
        costs = {name: cpu for name, (cpu, _) in found.items() if cpu is not None}
        print(f"## Tests of the preset `{preset}`\n")
        print(f"{len(found)} tests, {sum(costs.values()):.0f} CPU seconds.\n")
        print(table(["folder", "CPU seconds"], [(name, f"{s:.0f}") for name, s in totals(
            costs, lambda name: name.split("/")[0] + (" (Python)" if name.endswith(".py") else ""))
            if s >= 1]))
        largest = sorted(costs.items(), key=lambda item: -item[1])[:top]
        print(table(["test", "CPU seconds", "wall seconds"],
                    [(f"`{name}`", f"{s:.1f}", f"{found[name][1]:.1f}") for name, s in largest]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--top", type=int, default=40, help="rows of each sorted table (default 40)")
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.build.is_dir():
        sys.exit(f"test_costs: {arguments.build} is no folder: run scripts/test.sh first")
    report(arguments.build, arguments.top, len(os.sched_getaffinity(0)))


if __name__ == "__main__":
    main()
