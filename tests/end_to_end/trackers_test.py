"""Exports of a run's metrics to TensorBoard, CSV, Prometheus and Weights & Biases: the values of metrics.jsonl,
and never a reason for a run to fail."""
import csv
import json
import math
import os
import re
import signal
import unittest
import urllib.error
import urllib.request

import free_port
from end_to_end import support
from end_to_end.tracker_files import OfflineRun, float32, message, tf_records


def lines_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def numbers(record):
    """The numeric fields of a record; null is NaN, and members of an object have its name in front."""
    found = {}
    for name, value in record.items():
        if name == "format":  # of the file: its first line has it
            continue
        if isinstance(value, dict):
            found.update({f"{name}.{key}": number for key, number in numbers(value).items()})
        elif value is None:
            found[name] = math.nan
        elif isinstance(value, (int, float)):
            found[name] = value
    return found


class TrackersTest(support.RunTestCase):
    def event_file(self, run):
        files = list((run / "export/tensorboard").iterdir())
        self.assertEqual(1, len(files), files)
        self.assertTrue(files[0].name.startswith("events.out.tfevents."))
        return files[0]

    def launch(self, path, *more, expect=0):
        return self.run_scaletrain("launch", "--nproc", 1, *more, path, expect=expect).stderr

    def assert_csv_is_metrics(self, run):
        with open(run / "export/metrics.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        lines = lines_of(run)
        self.assertEqual(len(lines), len(rows))
        for row, line in zip(rows, lines):
            self.assertEqual([line["event"], line.get("split", "")], [row["event"], row["split"]])
            found = {name: float(text) for name, text in row.items()
                     if name not in ("event", "split") and text}
            expected = numbers(line)
            self.assertEqual(sorted(expected), sorted(found))
            for name, value in expected.items():
                self.assertTrue(found[name] == value or math.isnan(found[name]) and math.isnan(value),
                                f"{name}: {found[name]}, not {value}")

    def expected_points(self, run):
        """{tag: [(step, value)]} of the tags whose names are documented."""
        points = {}
        for line in support.records(run, "train"):
            for field, tag in (("loss", "Loss/train"), ("lr", "lr"), ("grad_norm", "grad_norm"),
                               ("samples_per_s", "throughput/samples_per_s")):
                points.setdefault(tag, []).append((line["step"], float32(line[field])))
        for line in support.records(run, "eval"):
            for field, tag in (("loss", "Loss/"), ("top1", "Accuracy/")):
                points.setdefault(tag + line["split"], []).append((line["step"], float32(line[field])))
        return points

    def assert_events_are_metrics(self, run):
        events = [message(record) for record in tf_records(self.event_file(run).read_bytes())]
        self.assertEqual([b"brain.Event:2"], events[0][3])
        text = message(message(events[1][5][0])[1][0])
        self.assertEqual([b"recipe/text_summary"], text[1])
        self.assertIn(b'"name": "all"', message(text[8][0])[8][0])
        points = {}
        for event in events[2:]:
            if 7 in event:  # a restart: later points are void
                points = {tag: [point for point in of_tag if point[0] < event[2][0]]
                          for tag, of_tag in points.items()}
                continue
            for value in message(event[5][0]).get(1, []):
                fields = message(value)
                if 2 not in fields:  # a picture, text, histogram or hyperparameter
                    continue
                points.setdefault(fields[1][0].decode(), []).append((event[2][0], fields[2][0]))
        for tag, expected in self.expected_points(run).items():
            # The test of a resumed run may be of the same step as that of its first attempt.
            self.assertEqual(dict(expected), dict(points[tag]), tag)

    def assert_textfile_is_metrics(self, path, run):
        text = path.read_text()
        values = dict(re.findall(r'^(\w+)\{run="all"\} (\S+)$', text, re.M))
        last = support.records(run, "train")[-1]
        for metric, field in (("step", "step"), ("loss", "loss"), ("learning_rate", "lr"),
                              ("samples_total", "samples")):
            self.assertEqual(last[field], float(values[f"scaletrain_{metric}"]))
        self.assertEqual("0", values["scaletrain_running"])
        val = [line for line in support.records(run, "eval") if line["split"] == "val"][-1]
        top1 = re.search(r'^scaletrain_eval\{run="all",split="val",measure="top1"\} (\S+)$', text, re.M)
        self.assertEqual(val["top1"], float(top1[1]))
        typed = set(re.findall(r"^# TYPE (\w+) (?:gauge|counter)$", text, re.M))
        self.assertLessEqual(set(values), typed)

    def test_all_trackers_have_the_values_of_metrics_jsonl(self):
        port, = free_port.free_ports(1)
        textfiles = self.folder / "textfiles"
        run = self.folder / "all"
        path = self.recipe("all", log={
            "every": {"steps": 1}, "to": ["tensorboard", "csv", "prometheus"], "port": port,
            "textfile_folder": str(textfiles)})
        error = self.launch(path)
        self.assertIn(f"exported {len(lines_of(run))} records to tensorboard, csv, prometheus\n", error)
        self.assertNotIn("warning: export", error)
        self.assert_csv_is_metrics(run)
        self.assert_events_are_metrics(run)
        self.assert_textfile_is_metrics(textfiles / "scaletrain_all.prom", run)
        # A resume exports the whole run again, into new files.
        self.launch(path, "--resume", "auto", "--allow", "steps", "--set", "steps=25")
        self.assertEqual(25, support.records(run, "train")[-1]["step"])
        self.assert_csv_is_metrics(run)
        self.assert_events_are_metrics(run)
        self.assert_textfile_is_metrics(textfiles / "scaletrain_all.prom", run)

    def offline_runs(self, run):
        """The offline runs of Weights & Biases, one for each attempt."""
        folders = sorted((run / "export/wandb").iterdir())
        for folder in folders:
            self.assertRegex(folder.name, r"^offline-run-\d{8}_\d{6}-[0-9a-f]{16}$")
        return [OfflineRun(folder) for folder in folders]

    def assert_wandb_is_metrics(self, run):
        runs = self.offline_runs(run)
        self.assertEqual(1, len({offline.id for offline in runs}))
        rows = {}
        for index, offline in enumerate(runs):
            self.assertEqual([offline.id.encode(), b"scaletrain", run.name.encode()],
                             [offline.run[number][0] for number in (1, 3, 8)])
            self.assertEqual([1] if index else None, offline.run.get(18))  # resumed
            self.assertEqual([min(offline.rows)] if index else None, offline.run.get(14))
            self.assertEqual(0, offline.exit_code)
            self.assertEqual(json.loads((run / "recipe.json").read_text())["model"], offline.config["model"])
            for step, row in offline.rows.items():
                rows.setdefault(step, {}).update(row)
        for tag, expected in self.expected_points(run).items():
            found = {step: float32(row[tag]) for step, row in rows.items() if tag in row}
            if tag.endswith("/test"):  # of the best checkpoint: it stands in the newest row
                self.assertEqual(expected[-1][1], found[max(found)], tag)
            else:
                self.assertEqual(dict(expected), found, tag)
        last = max(rows)
        self.assertEqual(last, runs[-1].summary["_step"])
        self.assertEqual(rows[last]["Loss/train"], runs[-1].summary["Loss/train"])
        return runs

    def test_weights_and_biases_has_an_offline_run_for_each_attempt(self):
        run = self.folder / "offline"
        path = self.recipe("offline", log={"every": {"steps": 1}, "to": "wandb"})
        os.environ["WANDB_API_KEY"] = "secretword"
        self.addCleanup(os.environ.pop, "WANDB_API_KEY")
        error = self.launch(path)
        self.assertIn(f"exported {len(lines_of(run))} records to wandb\n", error)
        self.assertEqual(1, len(self.assert_wandb_is_metrics(run)))
        self.launch(path, "--resume", "auto", "--allow", "steps", "--set", "steps=25")
        self.assertEqual(25, support.records(run, "train")[-1]["step"])
        self.assertEqual(2, len(self.assert_wandb_is_metrics(run)))
        for file in (run / "export/wandb").rglob("*.wandb"):
            self.assertNotIn(b"secretword", file.read_bytes())

    def test_a_running_job_is_scraped_on_loopback_and_a_stop_ends_the_exporter(self):
        port, = free_port.free_ports(1)
        process = self.start("launch", "--nproc", 1, self.recipe("scraped", steps=1000000, log={
            "every": {"steps": 100}, "to": "prometheus", "port": port}))

        def scrape():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                    self.assertIn("version=0.0.4", answer.headers["Content-Type"])
                    text = answer.read().decode()
                    return text if "scaletrain_loss{" in text else None
            except OSError:  # it does not listen yet
                return None

        text = support.wait_until(scrape, "an answer with a loss")
        self.assertIn('scaletrain_running{run="scraped"} 1\n', text)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=5)
        refused.exception.close()
        self.assertEqual(404, refused.exception.code)
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=support.TIMEOUT_S)[1]
        self.assertEqual(75, process.returncode, error)
        self.assertIn("records to prometheus\n", error)
        self.assert_nothing_left(process)

    def test_a_folder_that_cannot_be_written_is_one_warning_and_the_same_run(self):
        self.launch(self.recipe("plain"))
        run = self.folder / "refused"
        run.mkdir()
        (run / "export").write_text("a file in the place of the folder")
        error = self.launch(self.recipe("refused", log={"every": {"steps": 1}, "to": "csv"}))
        self.assertEqual(1, error.count("warning: export to csv: "), error)
        self.assertIn("training goes on without it", error)
        count = len(lines_of(run))
        self.assertIn(f"exported {count} records to csv ({count} lost)\n", error)
        self.assertIn(f"({count} lost)", (run / "logs/export.log").read_text())
        self.assertEqual(support.inspect(self.folder / "plain")["model_digest"],
                         support.inspect(run)["model_digest"])

    def test_an_exporter_that_is_killed_is_one_warning(self):
        process = self.start("launch", "--nproc", 1, self.recipe("killed", steps=300, log={
            "every": {"steps": 1}, "to": "csv"}))
        pid = support.wait_until(
            lambda: next((pid for pid in support.pids_with(process.marker)
                          if b"scaletrain-export" in support.command_line(pid)), None), "the exporter")
        os.kill(pid, signal.SIGKILL)
        error = process.communicate(timeout=support.TIMEOUT_S)[1]
        self.assertEqual(0, process.returncode, error)
        self.assertEqual(1, error.count("export to trackers: the process ended: killed by SIGKILL"), error)
        self.assert_nothing_left(process)


if __name__ == "__main__":
    unittest.main()
