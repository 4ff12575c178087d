"""Every command in README.md, CONTRIBUTING.md and docs/ is run, and every link and folder they name is there.

The ```sh blocks run in their order, by one bash each: CONTRIBUTING.md, README.md, docs/reference, then the other
folders of docs/ by name. They run in one temporary folder that looks like the repository after scripts/setup.sh, with
the programs on PATH: a later block finds the runs that an earlier one left. An HTML comment on the line before a
block says where it is not run, and why:

    <!-- docs-test: skip, needs Slurm -->           never here; the reason is reported
    <!-- docs-test: slow, trains for an hour -->    only with SCALETRAIN_LONG=1
    <!-- docs-test: by tests/launcher/x_test.py --> that file must hold each line of the block
    <!-- docs-test: shorter, --set steps=40 -->    without SCALETRAIN_LONG=1 recipes run with this flag
    <!-- docs-test: checked, trains as above -->   without SCALETRAIN_LONG=1 only the block's launches
                                                   count: `scaletrain recipe check` takes their words
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import guide
import tracked
from queries import QUERIES

BLOCK = re.compile(r"^(?:<!-- docs-test: (?P<how>skip|slow|by|shorter|checked)[ ,] *(?P<why>[^\n]+?) -->\n)?"
                   r"```sh\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
FOLDER_ROW = re.compile(r"^\| `([\w./-]+)/` \|", re.MULTILINE)
LIMIT_S = 900
LONG = os.environ.get("SCALETRAIN_LONG") == "1"


def blocks(text):
    """(how, why, code) of each block; how is None where it is run."""
    return [(match["how"], match["why"], match["code"]) for match in BLOCK.finditer(text)]


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def documents():
    """The pages in the order of their commands: guides use the runs of README.md and of the reference."""
    paths = tracked.files("README.md", "CONTRIBUTING.md", "docs/*.md")
    return sorted(paths, key=lambda path: (path.parts[0] == "docs" and path.parts[1] != "reference", path))


def shorter(code, flag):
    """Appends `flag` to each command of the block that launches or queues recipes."""
    return re.sub(r"^(scaletrain (?:launch|queue) (?:.*\\\n)*.*\.json)$", rf"\1 {flag}", code,
                  flags=re.MULTILINE)


def checked(code):
    """The launches of recipes in the block, as commands that check recipes and flags and start nothing."""
    launches = re.findall(r"^scaletrain launch ((?:.*\\\n)*.*\n)", code, flags=re.MULTILINE)
    return "".join(f"scaletrain recipe check {launch.replace('--resume auto ', '')}" for launch in launches)


def run_block(code, folder, programs):
    """Runs one block with bash; its output where it fails, None where it succeeds."""
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
    with subprocess.Popen(["bash", "-euo", "pipefail", "-c", code], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, start_new_session=True) as shell:
        try:
            output, _ = shell.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, 9)
            return f"did not end in {LIMIT_S} s:\n{shell.communicate()[0]}"
    return None if shell.returncode == 0 else f"exit {shell.returncode}:\n{output}"


def make_workplace(folder):
    """The top level of the repository as links; what a command makes lands in `folder`. The first block
    of README.md makes the digits."""
    for entry in tracked.ROOT.iterdir():
        if entry.name not in (".git", "runs", "digits"):
            (folder / entry.name).symlink_to(entry)


class Documents(unittest.TestCase):
    maxDiff = None

    def test_every_command_runs(self):
        programs = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ""))
        if not (programs / "scaletrain-worker").exists():
            self.skipTest("SCALETRAIN_BIN has no scaletrain-worker: built without LibTorch")
        with tempfile.TemporaryDirectory(prefix="docs_test_") as name:
            folder = pathlib.Path(name)
            make_workplace(folder)
            for path in documents():
                for number, block in enumerate(blocks(tracked.text(path)), 1):
                    with self.subTest(document=str(path), block=number):
                        self.check_block(block, folder, programs)

    def check_block(self, block, folder, programs):
        how, why, code = block
        if how == "skip":
            self.skipTest(why)
        if how == "slow" and not LONG:
            self.skipTest(f"SCALETRAIN_LONG=1 runs it: {why}")
        if how == "by":
            test = tracked.text(why)
            missing = [line for line in code.splitlines() if line.strip() not in test]
            self.assertEqual([], missing, f"{why} does not run these")
        else:
            if how == "shorter" and not LONG:
                code = shorter(code, why)
            if how == "checked" and not LONG:
                code = checked(code)
                self.assertTrue(code, "the block has no launch")
            self.assertIsNone(failure := run_block(code, folder, programs), f"\n{code}{failure}")

    def test_every_file_that_architecture_names_is_there(self):
        text = tracked.text(pathlib.Path("docs/internals/architecture.md"))
        named = re.findall(r"`((?:lib|app|launcher)/[\w/.]+)`", text)
        self.assertGreater(len(named), 60)
        self.assertEqual([], [path for path in named if not (tracked.ROOT / path).is_file()])

    def test_files_and_names_in_internals_are_in_the_code(self):
        place = r"`((?:lib|app|launcher|scripts|tests)/[\w/]+\.\w+)`"
        paths = [path for path in tracked.files("docs/internals/*.md") if path.stem != "guarantees"]
        self.assertGreater(len(paths), 15)
        found = 0
        for path in paths:
            text = tracked.text(path)
            named = set(re.findall(place, text)) - EXAMPLES
            self.assertEqual([], [name for name in named if not (tracked.ROOT / name).is_file()], path)
            # `kFree` in `launcher/jobs/checks/run_request.cpp`; `tests/parity/optimizers_test.py`, `CASES`
            pairs = [(file, name) for name, file in re.findall(rf"`(\w+)(?:\(\))?` (?:in|of) {place}", text)]
            pairs += re.findall(rf"{place}, `(\w+)(?:\(\))?`", text)
            self.assertEqual([], [pair for pair in pairs if pair[1] not in tracked.text(pair[0])], path)
            found += len(pairs)
        self.assertGreater(found, 8)

    def test_every_link_leads_somewhere(self):
        broken = []
        for path in documents():
            prose = re.sub(r"^ *```.*?^ *```", "", tracked.text(path), flags=re.M | re.S)
            prose = re.sub(r"(`+)[^\n]*?[^`\n]\1(?!`)", "", prose)  # code looks like a link at times
            for target, anchor in LINK.findall(prose):
                linked = (tracked.ROOT / path.parent / target) if target else tracked.ROOT / path
                if not linked.exists() or (anchor and anchor not in anchors(linked.read_text())):
                    broken.append(f"{path}: {target}#{anchor}")
        self.assertEqual([], broken)

    def test_the_keys_in_pages_for_newcomers_are_in_the_reference(self):
        keys = set(re.findall(r"^(?:\||#+ .*?) ?`([\w.]+)`(?: \||$)", tracked.text("docs/reference/recipe.md"), re.M))
        self.assertGreater(len(keys), 300)
        paths = tracked.files("docs/coming-from/*.md", "docs/guide/*.md")
        self.assertGreater(len(paths), 19)
        for path in paths:
            text = guide.COMMENT.sub("", tracked.text(path))
            if "coming-from" in path.parts:  # the other columns have another library's keys
                text = " ".join(row.split("|")[-2] for row in text.splitlines() if row.startswith("|"))
            named = re.findall(r"`([a-z_]+(?:\.[a-z_0-9]+)+)`|--set '?([a-z_.]+)=", text)
            # A model's own keys stand in the reference without "model.".
            unknown = [key for key in map("".join, named) if key.split(".")[0] in keys and
                       key not in keys and key.removeprefix("model.") not in keys and
                       not key.endswith((".safetensors", ".json", ".jsonl", ".pt", ".pth", ".bin"))]
            self.assertEqual([], unknown, path)

    def test_the_folder_map_is_the_top_level(self):
        top_level = {path.parts[0] for path in tracked.files() if len(path.parts) > 1}
        mapped = FOLDER_ROW.findall(tracked.text("README.md"))
        self.assertEqual(sorted(top_level), sorted({row.split("/")[0] for row in mapped}))
        for row in mapped:
            self.assertTrue((tracked.ROOT / row).is_dir(), row)


# The files that a reader of the pages on adding something writes.
EXAMPLES = {"lib/nn/models/logistic.cpp", "tests/nn/models/logistic_test.cpp", "lib/optim/optimizers/signsgd.cpp",
            "lib/task/tasks/rotation.cpp"}

STRATEGY_SECTIONS = ["When to use it", "Switch it on", "Cost", "Combinations", "How it works", "Limits"]
# What a user may call a thing; each must be found in the guide or in the recipe reference.
TERMS = """all-gather; all-reduce; activation checkpointing; CPU offload; CutMix; DiLoCo; DistributedDataParallel;
    EMA; FSDP; SyncBatchNorm; TensorBoard; ZeRO; autocast; bf16; calibration; confusion matrix; context parallel;
    cosine decay; data augmentation; data parallel; early stopping; elastic; expert parallel; fine-tuning; fp16;
    global batch; gradient accumulation; gradient checkpointing; gradient clipping; gradient compression;
    heartbeat; instruction tuning; label smoothing; layer decay; learning rate schedule; linear probe; local SGD;
    loss scaling; micro-batch; mixed precision; mixture of experts; mixup; object store; optimizer state; perplexity;
    pipeline parallel; preemption; pretrained weights; profiler; reduce-scatter; rendezvous; requeue; safetensors;
    sequence parallel; straggler; tensor parallel; throughput; tokenizer; top-1 accuracy; warmup; weight decay;
    world size"""


class Guide(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.guide = {path.stem: tracked.text(path) for path in tracked.files("docs/guide/*.md")}
        self.assertGreater(len(self.guide), 11)
        self.searched = {**self.guide, "recipe": tracked.text("docs/reference/recipe.md")}

    def test_a_search_finds_the_page_of_a_task_first(self):
        for query, page in QUERIES.items():
            with self.subTest(query=query):
                ranking = guide.search(self.searched, query)
                self.assertEqual(page, ranking[0][1], ranking[:3])

    def test_terms_of_the_field_are_found(self):
        text = " ".join("\n".join(self.searched.values()).lower().split())
        terms = [" ".join(term.lower().split()) for term in TERMS.split(";")]
        self.assertGreaterEqual(len(terms), 40)
        self.assertEqual([], [term for term in terms if term not in text])

    def test_pages_and_sentences_are_short(self):
        for page, text in self.guide.items():
            self.assertLessEqual(len(text.splitlines()), 200, page)
            self.assertEqual([], [sentence for sentence in guide.sentences(text)
                                  if len(sentence.split()) > 35], page)

    def test_the_way_to_a_first_model_is_short(self):
        """README.md up to its link to the first page, and that page: 600 words without code."""
        readme = tracked.text("README.md")
        before, link, _ = readme.partition("docs/guide/your-own-pictures.md")
        self.assertTrue(link, "README.md does not link docs/guide/your-own-pictures.md")
        read = guide.prose(before) + guide.prose(self.guide["your-own-pictures"])
        self.assertLessEqual(len(read.split()), 600)
        self.assertLessEqual(len(readme.splitlines()), 150)

    def test_the_guide_speaks_of_tasks_and_not_of_tests(self):
        for page, text in self.guide.items():
            self.assertEqual([], re.findall(r"[\w/]+_test\.(?:py|cpp)|three seeds", guide.prose(text)), page)

    def test_each_parallel_strategy_has_a_page_with_the_same_sections(self):
        paths = tracked.files("docs/internals/parallelism/*.md")
        self.assertEqual(10, len(paths))
        for path in paths:
            text = tracked.text(path)
            self.assertNotRegex(guide.prose(text), r"_test\.(py|cpp)|three seeds", path)
            self.assertIn(f"parallelism/{path.name}", tracked.text("docs/internals/parallelism.md"))
            if path.stem != "process-groups":
                self.assertEqual(STRATEGY_SECTIONS, re.findall(r"^## (.+)$", text, re.MULTILINE), path)

    def test_the_index_links_every_page(self):
        linked = {target for target, _ in LINK.findall(tracked.text("docs/README.md"))}
        pages = {str(path.relative_to("docs")) for path in tracked.files("docs/*.md")} - {"README.md"}
        self.assertEqual([], sorted(pages - linked))


class TheCheckItself(unittest.TestCase):
    def test_blocks_are_found_with_their_marks(self):
        text = ("Text.\n```sh\none\n\ntwo\n```\n<!-- docs-test: skip, needs Slurm -->\n```sh\nsrun\n"
                "```\n```json\n{}\n```\n<!-- docs-test: by tests/a_test.py -->\n```sh\nthree\n```\n")
        self.assertEqual([(None, None, "one\n\ntwo\n"), ("skip", "needs Slurm", "srun\n"),
                          ("by", "tests/a_test.py", "three\n")], blocks(text))

    def test_a_search_prefers_titles_then_headings_then_text(self):
        pages = {"title": "# Warm socks\n\nno\n", "heading": "# Feet\n\n## Socks\n\nno\n",
                 "text": "# Feet\n\nSocks.\n", "none": "# Feet\n\nno\n",
                 "both": "# Feet\n\nnew socks, [new](new.md)\n"}
        self.assertEqual(["title", "heading"], [name for _, name in guide.search(pages, "the socks")][:2])
        self.assertEqual("both", guide.search(pages, "new socks")[0][1])  # it has both words
        self.assertEqual((1, 10.0), guide.score(guide.counted(pages["title"]), "Sock"))
        self.assertEqual((2, 2.58), guide.score(guide.counted(pages["both"]), "new sock"))
        self.assertEqual((1, 1.0), guide.score(guide.counted("# A\n\n" + "sock " * 4), "socks", 4))

    def test_sentences_end_with_headings_items_and_cells(self):
        text = ("# Warm socks\n\nOne. Two\nlines!\n\n- item\n- other `x.y` [item](a/b.md)\n\n"
                "| a | b. c |\n|---|---|\n\n```sh\ncode here\n```\n<!-- note -->\nlast\n")
        self.assertEqual(["# Warm socks", "One.", "Two lines!", "item", "other `x.y` [item]", "a", "b.",
                          "c", "last"], guide.sentences(text))

    def test_anchors_are_those_of_the_headings(self):
        self.assertEqual({"gradient-clipping", "sharded-data-parallel-zero-fsdp"},
                         anchors("# Gradient clipping\ntext\n### Sharded data parallel (ZeRO, `FSDP`)\n"))

    def test_launches_are_made_shorter_and_nothing_else(self):
        self.assertEqual("scaletrain launch r.json --set steps=2\nscaletrain eval runs/r\n"
                         "scaletrain launch --nproc 2 \\\n  r.json --set steps=2\n"
                         "scaletrain queue r.json s.json --set steps=2\nscaletrain queue --show\n",
                         shorter("scaletrain launch r.json\nscaletrain eval runs/r\n"
                                 "scaletrain launch --nproc 2 \\\n  r.json\n"
                                 "scaletrain queue r.json s.json\nscaletrain queue --show\n",
                                 "--set steps=2"))

    def test_launches_are_checked_with_their_words_and_nothing_else_is_run(self):
        self.assertEqual("scaletrain recipe check --nproc 2 \\\n  r.json --set steps=2\n"
                         "scaletrain recipe check s.json\n",
                         checked("scaletrain launch --nproc 2 \\\n  r.json --set steps=2\n"
                                 "scaletrain eval runs/r\nscaletrain launch --resume auto s.json\nls -l\n"))

    def test_a_command_that_fails_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(run_block("true\ntest -d .\n", folder, "."))
            self.assertEqual("exit 3:\nwhy\n", run_block("echo why\n(exit 3)\ntrue\n", folder, "."))
            self.assertIn("exit 1", run_block("false | cat\ntrue\n", folder, "."))

    def test_every_marked_block_of_ours_is_read(self):
        """A mark that is misspelt would leave its block to be run, or hide it."""
        for path in documents():
            text = tracked.text(path)
            self.assertEqual(text.count("<!-- docs-test"),
                             sum(how is not None for how, _, _ in blocks(text)), str(path))
            self.assertEqual(text.count("\n```sh\n"), len(blocks(text)), str(path))


if __name__ == "__main__":
    unittest.main()
