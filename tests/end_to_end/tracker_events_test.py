"""MLflow, trackio, MLPerf lines and events of a run: the values of metrics.jsonl and journal.jsonl."""
import base64
import contextlib
import json
import sqlite3
import unittest

from end_to_end import support
from end_to_end.tracker_server import TrackerServer

SECRET = "secretword"


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class TrackerEventsTest(support.RunTestCase):
    def setUp(self):
        super().setUp()
        self.server = TrackerServer()
        self.addCleanup(self.server.close)

    def launch(self, path, *more, expect=0, command="launch", **env):
        variables = {"MLFLOW_TRACKING_URI": self.server.url, "WANDB_API_KEY": SECRET, **env}
        return self.run_scaletrain(command, *more, path, expect=expect, env=variables).stderr

    def points(self, run, field, event="train", **having):
        """{step: value} of metrics.jsonl, the newest attempt of each step."""
        return {line["step"]: line[field] for line in support.records(run, event)
                if all(line[key] == value for key, value in having.items())}

    def assert_mlflow_is_metrics(self, run):
        sent, = self.server.runs.values()
        self.assertEqual(run.name, sent["name"])
        self.assertEqual("FINISHED", sent["status"])
        self.assertEqual("sgd", sent["params"]["optimizer.name"])
        for tag, field, event, having in (("Loss/train", "loss", "train", {}), ("lr", "lr", "train", {}),
                                          ("Loss/val", "loss", "eval", {"split": "val"}),
                                          ("Accuracy/test", "top1", "eval", {"split": "test"})):
            found = {step: value for (step, _), value in sorted(sent["points"][tag].items())}
            self.assertEqual(self.points(run, field, event, **having), found, tag)

    def assert_trackio_is_metrics(self, run):
        with contextlib.closing(sqlite3.connect(run / "export/trackio/scaletrain.db")) as database:
            config, = database.execute("SELECT config FROM configs").fetchone()
            rows = database.execute("SELECT run_name, step, metrics FROM metrics ORDER BY id").fetchall()
        self.assertEqual(json.loads((run / "recipe.json").read_text())["model"], json.loads(config)["model"])
        found = {}
        for name, step, metrics in rows:
            self.assertEqual(run.name, name)
            for tag, value in json.loads(metrics).items():
                found.setdefault(tag, {})[step] = value
        self.assertEqual(self.points(run, "loss"), found["Loss/train"])
        self.assertEqual(self.points(run, "top1", "eval", split="val"), found["Accuracy/val"])

    def assert_mlperf_is_metrics(self, run):
        events = [json.loads(line.removeprefix(":::MLLOG "))
                  for line in (run / "export/mlperf.log").read_text().splitlines()]
        by_key = {}
        for event in events:
            by_key.setdefault(event["key"], []).append(event)
        self.assertEqual([7], [event["value"] for event in by_key["seed"]])
        self.assertEqual([16], [event["value"] for event in by_key["global_batch_size"]])
        self.assertEqual(self.points(run, "loss"),
                         {event["metadata"]["step"]: event["value"] for event in by_key["train_loss"]})
        self.assertEqual(["run_stop"], [events[-1]["key"]])
        self.assertEqual("success", events[-1]["metadata"]["status"])

    def test_trackers_have_the_values_of_metrics_jsonl_also_after_a_resume(self):
        run = self.folder / "all"
        path = self.recipe("all", log={"every": {"steps": 1}, "to": ["mlflow", "trackio", "mlperf"]})
        error = self.launch(path, "--nproc", 1)
        count = len(lines_of(run / "metrics.jsonl"))
        self.assertIn(f"exported {count} records to mlflow, trackio, mlperf\n", error)
        self.assert_mlflow_is_metrics(run)
        self.assert_trackio_is_metrics(run)
        self.assert_mlperf_is_metrics(run)
        self.launch(path, "--nproc", 1, "--resume", "auto", "--allow", "steps", "--set", "steps=25")
        self.assertEqual(25, support.records(run, "train")[-1]["step"])
        self.assert_mlflow_is_metrics(run)
        self.assert_trackio_is_metrics(run)
        for file in (run / "export").rglob("*"):
            if file.is_file():
                self.assertNotIn(SECRET.encode(), file.read_bytes(), file)

    def test_credentials_come_from_the_environment_or_netrc(self):
        netrc = self.folder / "logins"
        netrc.write_text("machine 127.0.0.1 login me password word\n")
        netrc.chmod(0o600)
        basic = "Basic " + base64.b64encode(b"me:word").decode()
        for name, variables, expected in (
                ("token", {"MLFLOW_TRACKING_TOKEN": SECRET}, f"Bearer {SECRET}"),
                ("user", {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "word"}, basic),
                ("netrc", {"NETRC": str(netrc)}, basic)):
            with self.subTest(name):
                self.server.headers.clear()
                self.launch(self.recipe(name, steps=2, log={"to": "mlflow"}), "--nproc", 1, **variables)
                self.assertEqual({expected}, {headers["Authorization"] for headers in self.server.headers})
                for file in (self.folder / name).rglob("*"):
                    if file.is_file():
                        self.assertNotIn(SECRET.encode(), file.read_bytes(), file)

    def test_events_of_a_run_that_fails_starts_again_and_is_resumed(self):
        out = self.folder / "events.jsonl"
        run = self.folder / "eventful"
        hook = {"HOOK": self.server.url + "/hook"}
        path = self.recipe("eventful", steps=12, checkpoint={"every": {"steps": 5}, "async": False}, log={
            "every": {"steps": 1}, "webhook": "env:HOOK", "on_event": f"cat >> {out}"})
        error = self.launch(path, "--nproc", 1, "--max-restarts", 1, expect=137, SCALETRAIN_FAULT="kill@8", **hook)
        first = lines_of(out)
        self.assertEqual(["start", "checkpoint", "failure", "restart", "failure", "end"],
                         [event["event"] for event in first])
        self.assertIn("sent 6 events to webhook, on_event\n", error)
        self.assertEqual(("eventful", 0, "SIGKILL"), tuple(first[2][key] for key in ("run", "rank", "signal")))
        self.assertTrue(first[2]["text"].startswith("eventful: failed"), first[2])
        self.assertEqual("failed", first[-1]["result"])
        self.launch(run, command="resume", **hook)
        second = lines_of(out)[len(first):]
        self.assertEqual(("start", 5), (second[0]["event"], second[0]["step"]))
        self.assertEqual(("end", "finished", 12), tuple(second[-1][key] for key in ("event", "result", "step")))
        self.assertEqual(first + second, self.server.events)
        self.assertNotIn(SECRET, out.read_text())
        self.assertNotIn(self.server.url, (run / "recipe.json").read_text())

    def test_a_job_that_fails_for_good_or_is_stopped_ends_too(self):
        out = self.folder / "names"
        log = {"every": {"steps": 1}, "on_event": f"echo $SCALETRAIN_EVENT $SCALETRAIN_RUN >> {out}",
               "events": ["failure", "end"]}
        self.launch(self.recipe("failing", log=log), "--nproc", 1, expect=137, SCALETRAIN_FAULT="kill@3")
        self.assertEqual(["failure failing", "end failing"], out.read_text().splitlines())
        out.unlink()
        process = self.start("launch", "--nproc", 1, self.recipe("stopped", steps=1000000, log=log))
        support.wait_until(lambda: (self.folder / "stopped/metrics.jsonl").exists(), "a step")
        process.terminate()
        error = process.communicate(timeout=support.TIMEOUT_S)[1]
        self.assertEqual(75, process.returncode, error)
        self.assertEqual(["end stopped"], out.read_text().splitlines())

    def test_neither_launcher_nor_worker_links_sqlite(self):
        for program in ("scaletrain", "scaletrain-worker"):
            self.assertNotIn(b"libsqlite3", (support.BIN / program).read_bytes(), program)
        self.assertNotIn(b"libcurl.so", (support.BIN / "scaletrain").read_bytes())


if __name__ == "__main__":
    unittest.main()
