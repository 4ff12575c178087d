#!/usr/bin/env python3
"""Draws the pictures of docs/images: the report page, and what `watch`, `compare` and `lr-find` print.

    scripts/screenshots.py             trains three short runs on digits first (some minutes on 2 cores)
    scripts/screenshots.py FOLDER      keeps the runs in FOLDER, or takes those that it kept there

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
    """Two runs of a ResNet-18 that differ in their learning rate, and one that stops early and has mistakes to show."""
    runs = ["runs/lr-0.001", "runs/lr-0.0003", "runs/early"]
    if (folder / runs[-1]).exists():
        return runs
    subprocess.run([sys.executable, ROOT / "scripts/make_digits.py", "digits"], cwd=folder, check=True)
    recipe = json.loads((ROOT / "recipes/digits_resnet18.json").read_text())
    recipe["data"]["train"]["limit"] = 640
    recipe["log"] = {"images": True}
    (folder / "digits.json").write_text(json.dumps(recipe, indent=1))
    for run, change in zip(runs, ("optimizer.lr=0.001", "optimizer.lr=0.0003", "epochs=3")):
        output(folder, "launch", "--nproc", "2", "--set", change, "--set", f"output={run}", "digits.json")
    output(folder, "eval", runs[-1], "--on", "test", "--predictions", f"{runs[-1]}/predictions-test.csv")
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


def draw_pictures(browser, page, name, width, height, dark=False):
    """The sections of pictures and predictions, at most `height` pixels of them."""
    browser.show(width, 900, dark)
    browser.open(page.as_uri())
    browser.frame()
    top, bottom = (browser.evaluate(f"document.getElementById('{one}').getBoundingClientRect().{end} + scrollY")
                   for one, end in (("pictures-section", "top"), ("predictions-section", "bottom")))
    save(name, browser.picture({"x": 0, "y": top, "width": width, "height": min(bottom - top, height)}))


def draw_all(work, temporary):
    first, second, early = demo_runs(work)
    compared, pictures = temporary / "report.html", temporary / "pictures.html"
    output(work, "report", first, second, "-o", compared)
    output(work, "report", early, "-o", pictures)
    with Browser(temporary / "profile") as browser:
        draw_report(browser, compared, "report.png", 1280, 1000, False)
        draw_report(browser, compared, "report-narrow.png", 400, 900, True)
        draw_pictures(browser, pictures, "report-pictures.png", 600, 1400)
        for width in ("100", "60"):
            draw_terminal(browser, temporary, work, f"watch-{width}", "watch", first, "--once", "--width", width,
                          shown=("watch", first))
        draw_terminal(browser, temporary, work, "compare", "compare", first, second)
        draw_terminal(browser, temporary, work, "lr-find", "lr-find", "--nproc", "2", "--steps", "60", "digits.json")


def main():
    with tempfile.TemporaryDirectory(prefix="scaletrain-screenshots-") as name:
        temporary = pathlib.Path(name)
        work = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else temporary / "work"
        work.mkdir(parents=True, exist_ok=True)
        draw_all(work, temporary)


if __name__ == "__main__":
    main()
