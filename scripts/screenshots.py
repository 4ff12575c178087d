#!/usr/bin/env python3
"""Draws the pictures of docs/images: the report page, and what `watch` and `compare` print.

    scripts/screenshots.py                    trains two short runs on digits first (about a minute on 2 cores)
    scripts/screenshots.py FOLDER RUN RUN     takes two runs, named as seen from FOLDER

Needs build/release/bin and Chromium. No picture is larger than 200 KB.
"""

import html
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from browser import Browser  # noqa: E402

BIN = pathlib.Path(os.environ.get("SCALETRAIN_BIN", ROOT / "build/release/bin")).resolve()
SCALETRAIN = BIN / "scaletrain"
IMAGES = ROOT / "docs/images"
MOST_BYTES = 200_000
# Each character outside of ASCII has a cell of its own: fonts that lack it may not move its neighbours.
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; } pre { display: inline-block; margin: 0; padding: 12px 14px; background: #14171a; color: #e6e9ec;
  font: 14px/18px "DejaVu Sans Mono", monospace; } b { color: #57c26f; font-weight: 400; }
i { display: inline-block; width: 1ch; height: 18px; vertical-align: top; font-style: normal; text-align: center; }
</style><pre>"""


def output(folder, *arguments):
    done = subprocess.run([SCALETRAIN, *arguments], cwd=folder, check=True, text=True, stdout=subprocess.PIPE)
    return done.stdout


def demo_runs(folder):
    """Two runs of a ResNet-18 that differ in their learning rate."""
    subprocess.run([sys.executable, ROOT / "scripts/make_digits.py", "digits"], cwd=folder, check=True)
    recipe = json.loads((ROOT / "recipes/digits_resnet18.json").read_text())
    recipe["data"]["train"]["limit"] = 640
    (folder / "digits.json").write_text(json.dumps(recipe, indent=1))
    runs = []
    for rate in ("0.001", "0.0003"):
        runs.append(f"runs/lr-{rate}")
        output(folder, "launch", "--nproc", "2", "--set", f"optimizer.lr={rate}", "--set", f"output={runs[-1]}",
               "digits.json")
    return runs


def terminal_page(command, text):
    cells = "".join(letter if letter.isascii() else f"<i>{letter}</i>" for letter in html.escape(text))
    return f"{TERMINAL}<b>$ {html.escape(command)}</b>\n{cells}</pre>"


def save(name, picture):
    if len(picture) > MOST_BYTES:
        sys.exit(f"{name}: the picture has {len(picture)} bytes\n  {MOST_BYTES} are allowed: draw less of the page")
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / name).write_bytes(picture)
    print(f"docs/images/{name}  {len(picture) / 1000:.0f} KB")


def draw_terminal(browser, pages, folder, name, *arguments, shown=None):
    page = pages / f"{name}.html"
    page.write_text(terminal_page("scaletrain " + " ".join(shown or arguments), output(folder, *arguments)))
    browser.show(1280)
    browser.open(page.as_uri())
    box = json.loads(browser.evaluate("JSON.stringify(document.querySelector('pre').getBoundingClientRect())"))
    save(f"{name}.png", browser.picture({key: box[key] for key in ("x", "y", "width", "height")}))


def draw_report(browser, page, name, width, height, dark):
    browser.show(width, 900, dark)
    browser.open(page.as_uri())
    browser.frame()
    save(name, browser.picture({"x": 0, "y": 0, "width": width, "height": height}))


def main():
    with tempfile.TemporaryDirectory(prefix="scaletrain-screenshots-") as temporary:
        folder, runs = pathlib.Path(temporary), sys.argv[2:]
        work = pathlib.Path(sys.argv[1]) if runs else folder
        runs = runs or demo_runs(folder)
        page = folder / "report.html"
        output(work, "report", *runs, "-o", page)
        with Browser(folder / "profile") as browser:
            draw_report(browser, page, "report.png", 1280, 1000, False)
            draw_report(browser, page, "report-narrow.png", 400, 900, True)
            for width in ("100", "60"):
                draw_terminal(browser, folder, work, f"watch-{width}", "watch", runs[0], "--once", "--width", width,
                              shown=("watch", runs[0]))
            draw_terminal(browser, folder, work, "compare", "compare", *runs)


if __name__ == "__main__":
    main()
