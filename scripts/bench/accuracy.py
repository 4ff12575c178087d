"""A measure of a recipe over several seeds, and its median: no speed, so no peer.

    python scripts/bench/accuracy.py recipes/digits_resnet18.json [--seeds 3] [--set epochs=20]
    python scripts/bench/accuracy.py recipes/text_gpt.json --measure loss --set sync=periodic

Of the test set where the recipe has one, of the validation set at the end otherwise.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import compare


def last_evaluation(recipe, seed, nproc, settings):
    """The "eval" line that ends a run."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        changes = [f"seed={seed}", f"output={run}", *settings]
        compare.run([compare.PROGRAMS / "scaletrain", "launch", "--nproc", nproc, recipe,
                     *(part for change in changes for part in ("--set", change))], limit_s=None)
        with open(run / "metrics.jsonl", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    return [line for line in lines if line["event"] == "eval"][-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe")
    parser.add_argument("--measure", default="top1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args()
    values = []
    for seed in range(1, options.seeds + 1):
        line = last_evaluation(options.recipe, seed, options.nproc, options.set)
        values.append(line[options.measure])
        print(f"seed {seed}: {values[-1]:.4f} of {line['count']}", file=sys.stderr)
    print(json.dumps({"recipe": options.recipe, "measure": options.measure, "values": values,
                      "median": statistics.median(values)}))


if __name__ == "__main__":
    main()
