"""Runs the mutants of source files: see scripts/mutate.sh."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import find
import rebuild

LEAST_LIMIT_S = 20
QUICK_S = 0.3
ROW = re.compile(r"^\| `([\w/.]+)` \| `` (.+?) `` \| ([^|]+) \|", re.MULTILINE)


class Case:
    """A test case of the program: its name, how long it takes, the numbers of what it reaches."""

    def __init__(self, name):
        # The name for doctest's filter, where a comma would divide it.
        self.pattern = re.sub(r"[^\w .:/-]", "?", name)
        self.name = name
        self.seconds = 0
        self.failed = True
        self.reached = set()


class Server:
    """The program, waiting for runs (server.h)."""

    def __init__(self, program, work):
        self.work = work
        self.process = subprocess.Popen(
            [program, "--no-version", "--abort-after=1", "serve"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, OMP_WAIT_POLICY="PASSIVE"))

    def run(self, mutant, limit_s, test_filter, log="-"):
        """The exit status; -1 where it did not end in time."""
        with tempfile.TemporaryDirectory(dir=self.work, ignore_cleanup_errors=True) as folder:
            print(mutant, int(limit_s * 1000), folder, log, test_filter, file=self.process.stdin,
                  flush=True)
            return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def record(server):
    """The cases that pass, each with what it reaches; the quickest first."""
    log = server.work / "reached"
    server.run(0, 1200, "*", log)
    cases = []
    for line in log.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "case":
            cases.append(Case(rest))
        elif word == "end":
            failed, seconds = rest.split()
            cases[-1].failed, cases[-1].seconds = failed != "0", float(seconds)
        elif cases:
            cases[-1].reached.add(int(word))
    for case in cases:
        if case.failed:
            rebuild.fail(f"this test case fails without a mutant: {case.name}", "repair it first")
    return sorted(cases, key=lambda case: case.seconds)


def in_groups(cases):
    """The cases in runs of doubling length: most mutants are killed in the first one."""
    groups, limit_s = [[]], QUICK_S
    for case in cases:
        if groups[-1] and sum(one.seconds for one in groups[-1]) + case.seconds > limit_s:
            groups.append([])
            limit_s *= 2
        groups[-1].append(case)
    return groups


def verdict_on(server, number, cases, end):
    """Whether a case fails with the mutant that all of `cases` reach."""
    for group in in_groups(cases):
        if time.monotonic() > end:
            return "not run"
        limit_s = max(LEAST_LIMIT_S, 5 * sum(case.seconds for case in group))
        if server.run(number, limit_s, ",".join(case.pattern for case in group)) != 0:
            return "killed"
    return "survived"


def judge(program, work, mutants, options):
    """[(mutant, "killed" | "survived" | "unreached" | "not mutated" | "not run")]"""
    servers = queue.SimpleQueue()
    for _ in range(options.jobs):
        servers.put(Server(program, work))
    server = servers.get()
    cases = [case for case in record(server) if case.seconds <= options.longest]
    servers.put(server)
    reached = set().union(*(case.reached for case in cases))
    seen = [one for one in mutants if {one.number, -one.number} & reached]
    rebuild.say(f"{len(cases)} test cases, {sum(case.seconds for case in cases):.0f} s; they reach "
                f"{len(seen)} of {len(mutants)} mutants")
    end = time.monotonic() + options.minutes * 60

    def look(mutant):
        number = mutant.number
        if -number in reached:
            return "not mutated"
        if number not in reached:
            return "unreached"
        one = servers.get()
        if number % 50 == 0:
            rebuild.say(f"at mutant {number}")
        try:
            verdict = verdict_on(one, number, [case for case in cases if number in case.reached], end)
            if verdict == "survived":
                rebuild.say(f"line {mutant.line} survived: {mutant.what}: {mutant.text}")
            return verdict
        finally:
            servers.put(one)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(zip(mutants, pool.map(look, mutants)))
    for _ in range(options.jobs):
        servers.get().close()
    return verdicts


def known_survivors(listing, name):
    """(line's text, what was done) of the survivors of `name` that the list has."""
    if not listing.exists():
        return set()
    return {(text, what.strip()) for file, text, what in ROW.findall(listing.read_text())
            if file == name}


def report(name, verdicts, left, known):
    """Prints the counts and the survivors; whether there is one that the list does not have."""
    counts = collections.Counter(verdict for _, verdict in verdicts)
    counts["not mutated"] += len(left)
    print(f"{name}: " + ", ".join(
        f"{counts[one]} {one}" for one in ("killed", "survived", "unreached", "not mutated",
                                           "not run") if counts[one] or one != "not run"))
    new = counts["not run"] > 0
    for mutant, verdict in verdicts:
        if verdict in ("survived", "unreached"):
            listed = (mutant.text, mutant.what) in known
            new |= not listed
            print(f"{name}:{mutant.line}: mutant {mutant.number} {verdict}"
                  f"{' (listed)' if listed else ''}: {mutant.what}: {mutant.text}")
    sys.stdout.flush()
    return new


def main():
    parser = argparse.ArgumentParser(prog="scripts/mutate.sh")
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE")
    parser.add_argument("--only", type=lambda text: [int(one) for one in text.split(",")],
                        metavar="N,...", help="the numbers of some mutants")
    parser.add_argument("--jobs", type=int, default=2, help="test programs at the same time")
    parser.add_argument("--minutes", type=float, help="no run starts later; default 20 a file")
    parser.add_argument("--longest", type=float, default=float("inf"), metavar="SECONDS",
                        help="test cases that take longer are left out: more mutants survive")
    parser.add_argument("--program", help="the tests, default bin/test_MODULE")
    parser.add_argument("--build", type=pathlib.Path, default="build/release")
    options = parser.parse_args()
    options.minutes = options.minutes or 20 * len(options.files)
    root, build = pathlib.Path.cwd(), options.build.resolve()
    names = [str(file.resolve().relative_to(root)) for file in options.files]
    for name in names:
        if not name.endswith(".cpp") or not (root / name).is_file():
            rebuild.fail(f"{name} is no .cpp file", "a header has no object of its own")
    programs = {options.program or f"bin/test_{name.split('/')[1]}" for name in names}
    if len(programs) > 1:
        rebuild.fail("the files belong to several test programs", "name those of one module")
    program = programs.pop()
    work = root / "build" / "mutate" / names[0]
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)

    rebuild.ninja(build, program)
    finders = []
    for name in names:
        command, _ = rebuild.compile_command(build, root / name)
        try:
            finders.append(find.find(root / name, command, 1 + sum(
                len(finder.mutants) for finder in finders)))
        except find.NotParsed as error:
            rebuild.fail(f"{name} is not parsed", str(error))
    mutants = [mutant for finder in finders for mutant in finder.mutants]
    rebuild.say(f"{shlex.join(names)}: compiling {len(mutants)} mutants")
    target = rebuild.with_mutants(build, work, program, finders)
    if options.only is not None:
        mutants = [mutant for mutant in mutants if mutant.number in options.only]
    verdicts = judge(target, work, mutants, options)
    new = False
    for name, finder in zip(names, finders):
        new |= report(name, [one for one in verdicts if one[0] in finder.mutants], finder.left,
                      known_survivors(root / "docs/lab/mutants.md", name))
    shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if new else 0)


if __name__ == "__main__":
    main()
