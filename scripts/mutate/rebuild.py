"""Builds a test program with mutated files in the place of the original ones, beside the build."""
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def say(text):
    print(f"mutate: {text}", file=sys.stderr, flush=True)


def fail(text, remedy):
    sys.exit(f"mutate: {text}\n  {remedy}")


def run(words, folder, failure, limit_s=3600):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                          timeout=limit_s)
    if done.returncode != 0:
        fail(failure, (done.stderr or done.stdout)[:4000])
    return done.stdout


def ninja(build, *arguments):
    return run(["ninja", *arguments], build, f"ninja {shlex.join(arguments)} failed", 3600)


def include_of(file):
    """The line of a unity file that includes `file`: by its path in the source folder, where this
    program runs (scripts/cmake/scaletrain_build.cmake)."""
    return f'#include "{file.relative_to(pathlib.Path.cwd())}"'


def compile_command(build, file):
    """(the words of the command that compiles `file`, the source that it names): `file` itself, or
    the unity file that includes it."""
    include = include_of(file)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source == file or (source.name.startswith("unity_") and source.exists()
                              and include in source.read_text().split("\n")):
            return shlex.split(entry["command"]), source
    return fail(f"{file} is not compiled in {build}", "build it first: scripts/setup.sh --tests")


def neighbours(build, target):
    """What `target` is made of, and what is made of it, as ninja names them."""
    made_of, made = ninja(build, "-t", "query", target).split("  outputs:")
    return [re.findall(r"^    ([^|\s]\S*)$", part, re.MULTILINE) for part in (made_of, made)]


def compile_unit(build, work, command, source, finders, header, count):
    """The object that takes the place of the one that `command` makes of `source`."""
    path = pathlib.Path(finders[0].path)
    text = f'#include "{path}"\n' if source == path else source.read_text()
    for finder in finders:
        original = pathlib.Path(finder.path)
        copy = work / f"{finder.mutants[0].number if finder.mutants else 0}_{original.name}"
        copy.write_text(finder.result())
        text = text.replace(include_of(original), f'#include "{copy}"')
    unit = work / f"unit_{path.stem}.cpp"
    unit.write_text(f'#include "{HERE / header}"\n{text}')
    words = list(command)
    words[words.index("-o") + 1] = str(unit.with_suffix(".o"))
    words[words.index("-c") + 1] = str(unit)
    run([*words, "-w", "-O1", f"-DSCALETRAIN_MUTANTS={count + 1}"], build,
        f"the mutants of {path.name} do not compile")
    return unit.with_suffix(".o")


def with_mutants(build, work, program, finders):
    """A copy of `program`, of the objects that it has, but for those of the mutated files."""
    units = {}
    for finder in finders:
        command, source = compile_command(build, pathlib.Path(finder.path))
        units.setdefault(source, (command, []))[1].append(finder)
    count = sum(len(finder.mutants) for finder in finders)
    replaced = {}
    for source, (command, of_unit) in units.items():
        replaced[command[command.index("-o") + 1]] = str(
            compile_unit(build, work, command, source, of_unit,
                         "switch.h" if replaced else "server.h", count))

    link = ninja(build, "-t", "commands", "-s", program).strip()
    target = work / pathlib.Path(program).name
    link = link.replace(f"-o {program}", f"-o {target}")
    archives = {archive for original in replaced for archive in neighbours(build, original)[1]
                if archive.endswith(".a") and f" {archive} " in link}
    for number, archive in enumerate(sorted(archives)):
        objects = [one for one in neighbours(build, archive)[0] if one.endswith(".o")]
        run(["ar", "qc", work / f"{number}.a", *(replaced.get(one, one) for one in objects)], build,
            "no archive was made")
        link = link.replace(f" {archive} ", f" {work / str(number)}.a ")
    for original, mutated in replaced.items():
        if f" {original} " in link:
            link = link.replace(f" {original} ", f" {mutated} ")
        elif not archives:
            fail(f"{program} does not link {original}", "name another one with --program")
    run(["sh", "-c", link], build, f"{program} does not link with the mutants")
    return target
