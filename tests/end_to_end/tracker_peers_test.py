"""One run with all trackers on, read by the trackers' own packages: every field has the value of metrics.jsonl."""
import json
import math
import os
import re
import signal
import subprocess
import unittest
import urllib.request

import free_port
import peer
from end_to_end import support
from end_to_end.tracker_files import float32

TRACKERS = ["tensorboard", "csv", "prometheus", "wandb", "mlflow", "trackio", "mlperf"]
NAMED = {("train", "loss"): "Loss/train", ("train", "lr"): "lr", ("train", "grad_norm"): "grad_norm",
         ("train", "samples_per_s"): "throughput/samples_per_s", ("train", "data_time"): "time/data",
         ("train", "compute_time"): "time/compute", ("train", "memory_bytes"): "memory/peak_bytes",
         ("eval", "loss"): "Loss/{split}", ("eval", "top1"): "Accuracy/{split}"}
# Metric of Prometheus: event and field of metrics.jsonl.
PROMETHEUS = {"attempt": ("train", "attempt"), "step": ("train", "step"), "epoch": ("train", "epoch"),
              "samples_total": ("train", "samples"), "loss": ("train", "loss"), "learning_rate": ("train", "lr"),
              "gradient_norm": ("train", "grad_norm"), "samples_per_second": ("train", "samples_per_s"),
              "device_tflops_per_second": ("train", "tflops_per_s"), "model_flops_utilization": ("train", "mfu"),
              "data_seconds": ("train", "data_time"), "compute_seconds": ("train", "compute_time"),
              "memory_bytes": ("train", "memory_bytes"), "skipped_samples_total": ("train", "skipped_samples"),
              "last_record_timestamp_seconds": ("train", "time"), "checkpoint_step": ("checkpoint", "step"),
              "checkpoint_stall_seconds": ("checkpoint", "stall_time")}

TENSORBOARD = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "images": 0, "histograms": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
started = plugin_data_pb2.HParamsPluginData.FromString(
    events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content).session_start_info
print(json.dumps({
    "scalars": {tag: [[one.step, one.wall_time, one.value] for one in events.Scalars(tag)] for tag in tags["scalars"]},
    "images": {tag: [[one.step, one.width, one.height, one.encoded_image_string.hex()] for one in events.Images(tag)]
               for tag in tags["images"]},
    "histograms": {tag: [[one.step, one.wall_time, {
        name: list(value) if name.startswith("bucket") else value for name, value in vars(one.histogram_value).items()}]
                         for one in events.Histograms(tag)] for tag in tags["histograms"]},
    "hparams": {name: getattr(value, value.WhichOneof("kind")) for name, value in started.hparams.items()},
    "recipe": events.Tensors("recipe/text_summary")[0].tensor_proto.string_val[0].decode()}))
"""

TRACKIO = """
import json, sys
from trackio.sqlite_storage import SQLiteStorage
name = sys.argv[1]
print(json.dumps({"runs": SQLiteStorage.get_runs("scaletrain"), "rows": SQLiteStorage.get_logs("scaletrain", name),
                  "config": SQLiteStorage.get_run_config("scaletrain", name)}))
"""

MLFLOW = """
import json
from mlflow.tracking import MlflowClient
client = MlflowClient()
experiment = client.get_experiment_by_name("scaletrain")
run, = client.search_runs([experiment.experiment_id])
print(json.dumps({"name": run.info.run_name, "status": run.info.status, "params": run.data.params, "points": {
    tag: [[point.step, point.timestamp, point.value] for point in client.get_metric_history(run.info.run_id, tag)]
    for tag in run.data.metrics}}))
"""

PROMETHEUS_CLIENT = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
print(json.dumps([[one.name, family.type, one.labels, one.value]
                  for family in text_string_to_metric_families(open(sys.argv[1]).read()) for one in family.samples]))
"""

PANDAS = """
import json, sys, pandas
table = pandas.read_csv(sys.argv[1], float_precision="round_trip")
print(json.dumps([{name: value for name, value in row.items() if not (isinstance(value, float) and value != value)}
                  for row in table.to_dict("records")]))
"""


def numbers(line):
    """{name: number} of a line of metrics.jsonl; null is NaN, members of an object have its name in front."""
    found = {}
    for name, value in line.items():
        if isinstance(value, dict):
            found.update({f"{name}.{key}": one for key, one in numbers(value).items()})
        elif value is None:
            found[name] = math.nan
        elif isinstance(value, (int, float)) and name != "format":
            found[name] = value
    return found


def tags(line):
    """{tag: number} of a line, without its place and time."""
    def tag(field):
        if (line["event"], field) in NAMED:
            return NAMED[line["event"], field].format(**line)
        return f"{field}/{line['split']}" if line["event"] == "eval" else f"{line['event']}/{field}"
    return {tag(field): value for field, value in numbers(line).items() if field not in ("attempt", "step", "time")}


def comparable(value):
    """NaN equals NaN."""
    if isinstance(value, (list, tuple)):
        return [comparable(one) for one in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@unittest.skipUnless(support.LONG, "the trackers' own packages: the long form")
class TrackerPeersTest(support.RunTestCase):
    def read(self, program, *arguments, **variables):
        """The JSON that a program prints in the environment of the trackers' own packages."""
        done = subprocess.run([peer.python("trackers"), "-c", program, *map(str, arguments)], capture_output=True,
                              text=True, env={**os.environ, **variables}, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def mlflow_server(self):
        """The address of MLflow's own server, with SQLite."""
        port, = free_port.free_ports(1)
        program = peer.python("trackers").parent / "mlflow"
        with open(self.folder / "mlflow.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [program, "server", "--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db",
                 "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
                stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"})
        self.addCleanup(process.wait)
        self.addCleanup(lambda: os.killpg(process.pid, signal.SIGKILL))

        def answers():
            self.assertIsNone(process.poll(), (self.folder / "mlflow.log").read_text())
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                    return answer.status == 200
            except OSError:  # it does not listen yet
                return False

        support.wait_until(answers, "MLflow's server", support.TIMEOUT_S)
        return f"http://127.0.0.1:{port}"

    def points(self, value=lambda line, number: number):
        """{tag: [(step, ...)]} of all lines."""
        found = {}
        for line in self.lines:
            for tag, number in tags(line).items():
                found.setdefault(tag, []).append((line["step"], value(line, number)))
        return found

    def assert_points(self, expected, found):
        self.assertEqual(sorted(expected), sorted(found))
        for tag, points in expected.items():
            self.assertEqual(sorted(comparable(points), key=str), sorted(comparable(found[tag]), key=str), tag)

    def assert_tensorboard(self):
        file, = (self.run_folder / "export/tensorboard").iterdir()
        found = self.read(TENSORBOARD, file)
        self.assert_points(
            self.points(lambda line, number: (line["time"], float32(number))),
            {tag: [(step, (time, value)) for step, time, value in points]
             for tag, points in found["scalars"].items()})
        self.assertIn((self.run_folder / "recipe.json").read_text().splitlines()[1], found["recipe"])
        self.assertEqual(("sgd", 0.05, 7), tuple(found["hparams"][key] for key in ("optimizer.name", "optimizer.lr",
                                                                                   "seed")))
        index = [json.loads(text) for text in (self.run_folder / "media/index.jsonl").read_text().splitlines()]
        images = {(tag, step): data for tag, points in found["images"].items() for step, _, _, data in points}
        self.assertEqual({(line["name"], line["step"]): (self.run_folder / "media" / line["file"]).read_bytes().hex()
                          for line in index}, images)
        histograms = {(tag, step): (time, histogram) for tag, points in found["histograms"].items()
                      for step, time, histogram in points}
        for text in (self.run_folder / "histograms.jsonl").read_text().splitlines():
            line = json.loads(text)
            for name, ours in line["histograms"].items():
                time, theirs = histograms.pop((name, line["step"]))
                self.assertEqual(line["time"], time)
                for field in ("min", "max", "sum", "sum_squares"):
                    self.assertEqual(ours[field], theirs[field], (name, field))
                self.assertEqual((sum(ours["counts"]), ours["counts"]), (theirs["num"], theirs["bucket"]))
        self.assertEqual({}, histograms)

    def assert_wandb(self):
        folder, = (self.run_folder / "export/wandb").iterdir()
        done = subprocess.run([peer.python("trackers").parent / "wandb", "leet", "inspect", "--json", folder],
                              check=True, capture_output=True, text=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        rows, step = {}, 0  # a line of an earlier step belongs to the newest row
        for line in self.lines:
            step = max(step, line["step"])
            rows.setdefault(step, {}).update({**tags(line), "_step": step, "_timestamp": line["time"],
                                              "_runtime": line["time"] - self.lines[0]["time"]})
        self.assertEqual([{key: comparable(value) for key, value in row.items()} for row in rows.values()],
                         [record["history"]["item"] for record in found if record["type"] == "history"])
        run = next(record["run"] for record in found if record["type"] == "run")
        self.assertEqual(json.loads((self.run_folder / "recipe.json").read_text()), run["config"]["update"])
        last = {key: comparable(value) for row in rows.values() for key, value in row.items()}
        self.assertEqual(last, next(record["summary"]["update"] for record in found if record["type"] == "summary"))
        self.assertEqual(["exit", "footer"], [record["type"] for record in found[-2:]])

    def assert_mlflow(self, server):
        found = self.read(MLFLOW, MLFLOW_TRACKING_URI=server)
        self.assertEqual((self.run_folder.name, "FINISHED"), (found["name"], found["status"]))
        self.assertEqual(("sgd", "0.05", "20"), tuple(found["params"][key] for key in (
            "optimizer.name", "optimizer.lr", "steps")))
        expected = {re.sub(r"[^\w./ -]", "_", tag): points for tag, points in self.points(
            lambda line, number: (round(line["time"] * 1000), number)).items()}
        self.assert_points(expected, {tag: [(step, (time, value)) for step, time, value in points]
                                      for tag, points in found["points"].items()})

    def assert_trackio(self):
        found = self.read(TRACKIO, self.run_folder.name, TRACKIO_DIR=str(self.run_folder / "export/trackio"))
        self.assertEqual([self.run_folder.name], found["runs"])
        self.assertEqual(json.loads((self.run_folder / "recipe.json").read_text()),
                         {key: value for key, value in found["config"].items() if not key.startswith("_")})
        rows = [{key: comparable(value) for key, value in row.items() if key not in ("timestamp", "step")}
                for row in found["rows"]]
        with_numbers = [line for line in self.lines if tags(line)]
        self.assertEqual([line["step"] for line in with_numbers], [row["step"] for row in found["rows"]])
        self.assertEqual([{key: comparable(value) for key, value in tags(line).items()} for line in with_numbers], rows)

    def assert_prometheus(self):
        name = self.run_folder.name
        expected = {("scaletrain_running", ""): 0}
        for line in self.lines:  # the newest value counts
            for metric, (event, field) in PROMETHEUS.items():
                if line["event"] == event and field in numbers(line):
                    expected[f"scaletrain_{metric}", ""] = numbers(line)[field]
            if line["event"] == "eval":
                expected.update({("scaletrain_eval", f"{line['split']} {field}"): value
                                 for field, value in numbers(line).items() if field not in ("attempt", "time")})
        found = {}
        for metric, kind, labels, value in self.read(PROMETHEUS_CLIENT,
                                                     self.run_folder / f"export/scaletrain_{name}.prom"):
            self.assertEqual(name, labels.pop("run"))
            self.assertEqual("counter" if metric.endswith("_total") else "gauge", kind, metric)
            found[metric, " ".join(labels[key] for key in ("split", "measure") if key in labels)] = value
        self.assertEqual({key: comparable(value) for key, value in expected.items()},
                         {key: comparable(value) for key, value in found.items()})

    def assert_pandas(self):
        # pandas reads "nan" and an empty field alike.
        expected = [{"event": line["event"], **({"split": line["split"]} if "split" in line else {}),
                     **{name: value for name, value in numbers(line).items() if not math.isnan(value)}}
                    for line in self.lines]
        self.assertEqual(expected, self.read(PANDAS, self.run_folder / "export/metrics.csv"))

    def test_one_run_with_all_trackers_is_read_field_by_field(self):
        self.run_folder = self.folder / "all"
        server = self.mlflow_server()
        path = self.recipe("all", log={"every": {"steps": 1}, "to": TRACKERS, "histograms": {"steps": 10}},
                           checkpoint={"every": {"steps": 8}})
        error = self.run_scaletrain("launch", "--nproc", 1, path, env={"MLFLOW_TRACKING_URI": server}).stderr
        self.lines = [json.loads(text) for text in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        count = len(self.lines)
        if f"mlflow ({count} unsent)" in error:  # a server that just started is slower than such a short run
            error = error.replace(f"mlflow ({count} unsent)", "mlflow")
            done = self.run_scaletrain("export", "--once", "--run", self.run_folder, "--to", "mlflow",
                                       env={"MLFLOW_TRACKING_URI": server})
            self.assertIn(f"exported {count} records to mlflow\n", done.stdout)
        self.assertIn(f"exported {count} records to {', '.join(TRACKERS)}\n", error)
        for name, check in (("tensorboard", self.assert_tensorboard), ("wandb", self.assert_wandb),
                            ("mlflow", lambda: self.assert_mlflow(server)), ("trackio", self.assert_trackio),
                            ("prometheus", self.assert_prometheus), ("pandas", self.assert_pandas)):
            with self.subTest(name):
                check()


if __name__ == "__main__":
    unittest.main()
