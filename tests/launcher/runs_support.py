"""Run folders for the tests of report, compare, runs and models: written by hand, without a training."""

import json

from launcher.launch_support import LaunchTestCase


def train(step, attempt=0, time=None, **fields):
    return {"event": "train", "attempt": attempt, "step": step, "epoch": (step - 1) // 20, "samples": 64 * step,
            "loss": 2.0 / step, "lr": 0.001, "grad_norm": 1.5, "samples_per_s": 700.0 + step, "data_time": 0.01,
            "compute_time": 0.09, "memory_bytes": 300000000 + step, "order_digest": f"{step:016x}",
            "time": 1000.0 + 0.1 * step if time is None else time, **fields}


def evaluation(step, top1, split="val", attempt=0, **fields):
    return {"event": "eval", "attempt": attempt, "split": split, "step": step, "epoch": step // 20, "top1": top1,
            "top5": 1.0, "loss": 1 - top1, "count": 200, "skipped": 0, "time": 1000.0 + 0.1 * step, **fields}


class RunsTestCase(LaunchTestCase):
    def write_run(self, folder, records=None, environment=None, finished=True, **changes):
        """A run's folder below self.folder; `changes` are keys of its recipe."""
        run = self.folder / folder
        run.mkdir(parents=True)
        recipe = {"version": 1, "name": run.name, "seed": 1, "task": "image_classification",
                  "model": {"name": "mlp", "num_classes": 10}, "optimizer": {"name": "adamw", "lr": 0.001},
                  "checkpoint": {"best": {"metric": "top1", "mode": "max"}}, "output": str(run), **changes}
        (run / "recipe.json").write_text(json.dumps(recipe))
        if records is None:
            records = [train(step) for step in (10, 20, 30, 40)] + [evaluation(20, 0.75), evaluation(40, 0.5)]
        (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        (run / "environment.json").write_text(json.dumps(
            {"versions": {"scaletrain": "0.1.0", "torch": "2.11.0"}, "world_size": 1, "devices": ["cpu"],
             "git_commit": "a" * 40, "variables": {"SECRET_OF_TEST": "hidden"}, **(environment or {})}))
        if finished:
            (run / "finished.json").write_text(json.dumps({"step": 40, "epoch": 2}))
        return run

    def json_of(self, *arguments):
        return json.loads(self.run_launcher(*arguments).stdout)
