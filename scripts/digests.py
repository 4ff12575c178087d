"""Trains the example recipes on the digits and prints each one's model_digest, or compares them.

    python scripts/digests.py                     recipes/digits_resnet18.json and digits_vit_tiny.json
    python scripts/digests.py --epochs 1          a shortened form, for a quick look between commits
    python scripts/digests.py --write FILE        keeps the digests as JSON
    python scripts/digests.py --compare FILE      exits with 1 and says which differ from those

One rank of one thread by default: the digest of a recipe then depends on the program, LibTorch and the
processor alone, so a commit that promises to change no result can be compared with the one before it.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = ["digits_resnet18", "digits_vit_tiny"]


def digest(name, folder, options):
    run = folder / name
    command = [options.programs / "scaletrain", "launch", "--nproc", options.nproc,
               "--set", f"output={run}", "--set", "threads=1"]
    if options.epochs:
        command += ["--set", f"epochs={options.epochs}"]
    data = {"train": "train-{000000..000003}", "val": "val-000000", "test": "test-000000"}
    for split, shards in data.items():
        command += ["--set", f"data.{split}.shards={folder}/digits/{shards}.tar"]
    subprocess.run([*map(str, command), str(ROOT / f"recipes/{name}.json")], check=True,
                   stdout=subprocess.DEVNULL)
    found = subprocess.run([options.programs / "scaletrain", "checkpoint", "inspect",
                            run / "checkpoints/latest", "--json"], check=True, capture_output=True)
    return json.loads(found.stdout)["model_digest"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=RECIPES, metavar="RECIPE",
                        help="names in recipes/ (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=0, help="instead of the recipe's own")
    parser.add_argument("--nproc", type=int, default=1)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    expected = json.loads(options.compare.read_text()) if options.compare else {}

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.executable, ROOT / "scripts/make_digits.py", folder / "digits"],
                       check=True, stdout=subprocess.DEVNULL)
        found = {recipe: digest(recipe, folder, options) for recipe in options.recipes}
    if options.write:
        options.write.write_text(json.dumps(found, indent=1) + "\n")
    same = True
    for recipe, value in found.items():
        before = expected.get(recipe, value)
        same = same and value == before
        print(f"{recipe}: {value}" + ("" if value == before else f", was {before}"))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
