"""scaletrain profile RUN, trace merge and trace top: traces of a running job on two ranks."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import peer
from launcher.launch_support import LIMIT_S, LaunchTestCase

CPU_CATEGORIES = {"cpu_op", "user_annotation", "Trace", "fwdbwd", "ac2g", "cpu_instant_event"}
LONG = os.environ.get("SCALETRAIN_LONG") == "1"
# Ranks, their distributedInfo and whether events were read, by HolisticTraceAnalysis.
READ_WITH_HTA = """
import json, sys
from hta.trace_analysis import TraceAnalysis
traces = TraceAnalysis(trace_dir=sys.argv[1]).t
print("found", json.dumps({rank: [traces.meta_data[rank]["distributedInfo"], len(frame) > 0]
                           for rank, frame in traces.traces.items()}))
"""


class Profile(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.run_launcher("data", "synth", "set", "--samples", 24, "--classes", 3, "--size", 16)

    def recipe(self, name, **changes):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({
            "name": name, "seed": 7, "model": {"name": "mlp", "num_classes": 3, "hidden": 16, "layers": 1},
            "data": {"train": {"shards": "set/train-*.tar"}, "image_size": 16}, "threads": 1,
            "batch": {"per_device": 4}, "optimizer": {"name": "sgd", "lr": 0.01},
            "log": {"every": {"steps": 1000}}, "output": name, **changes}))
        return path

    def beside(self, *arguments, expect=0):
        """Runs a command while a job is running; its standard output and error."""
        process = self.start(*arguments)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(expect, process.returncode, f"--- out\n{out}\n--- err\n{err}")
        return out, err

    def check_trace(self, path, rank, steps, world_size=2):
        """A rank's trace of these steps, on one clock."""
        trace = json.loads(path.read_text())
        self.assertEqual(rank, trace["distributedInfo"]["rank"])
        self.assertEqual(world_size, trace["distributedInfo"]["world_size"])
        self.assertIn(trace["distributedInfo"]["backend"], ("gloo", "shm"))
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertLessEqual({event["cat"] for event in events}, CPU_CATEGORIES)
        spans = {}
        for event in events:
            kind = event.get("args", {}).get("scaletrain")
            if kind:
                spans.setdefault(kind, []).append(event)
        named = [event["name"] for event in spans["step"]]
        self.assertEqual([f"ProfilerStep#{step}" for step in steps], named)
        rows = {event["name"] for event in spans["row"]}
        self.assertLessEqual({"data_wait", "forward", "backward", "optimizer"}, rows)
        self.assertTrue(all(event["args"]["bytes"] > 0 and event["args"]["group"]
                            for event in spans["collective"]))
        # An operation of the forward pass lies in a forward row, whatever wrote it.
        forward = [(row["ts"], row["ts"] + row["dur"]) for row in spans["row"] if row["name"] == "forward"]
        losses = [event for event in events if event["name"] == "aten::cross_entropy_loss"]
        self.assertTrue(losses)
        for loss in losses:
            self.assertTrue(any(begin - 1000 <= loss["ts"] <= end + 1000 for begin, end in forward))

    def check_merged(self, path):
        merged = json.loads(path.read_text())
        names = [event["args"]["name"] for event in merged["traceEvents"] if event["name"] == "process_name"]
        self.assertEqual(["rank 0", "rank 1"], names)
        self.assertEqual({0, 1}, {event["pid"] for event in merged["traceEvents"]})

    def check_top(self, *paths):
        top = json.loads(self.beside("trace", "top", *paths, "--json")[0])
        self.assertEqual([0, 1], [rank["rank"] for rank in top["ranks"]])
        for rank in top["ranks"]:
            self.assertAlmostEqual(rank["window_ms"], sum(rank["rows_ms"].values()), places=3)
            self.assertGreater(rank["communication_ms"], 0)
            self.assertTrue(0 <= rank["overlap"] <= 1 and 0 <= rank["idle"] <= 1)
        kinds = {}
        for cost in top["costs"]:
            kinds.setdefault(cost["kind"], []).append(cost["self_ms"])
        self.assertNotIn("kernel", kinds)
        for kind in ("operation", "row", "collective"):
            self.assertEqual(sorted(kinds[kind], reverse=True), kinds[kind])
        return top

    def test_a_running_job_is_traced_on_all_ranks_and_goes_on(self):
        """What docs/guide/monitoring.md shows:

        scaletrain profile runs/digits --steps 5 --wait
        scaletrain trace merge runs/digits -o digits-trace.json
        scaletrain trace top runs/digits --most 5
        """
        job = self.start("launch", "--nproc", 2, self.recipe("run", steps=10000000))
        metrics = self.folder / "run/metrics.jsonl"
        self.wait_for(lambda: metrics.exists() and '"train"' in metrics.read_text(), "the first step")
        out, _ = self.beside("profile", "run", "--steps", 2, "--wait")
        files = out.splitlines()
        names = [re.fullmatch(r"run/profile/step-(\d+)-rank-(\d)\.json", file).groups() for file in files]
        self.assertEqual(["0", "1"], [rank for _, rank in names])
        [first] = {int(step) for step, _ in names}
        for rank, file in enumerate(files):
            self.check_trace(self.folder / file, rank, [first, first + 1])
        self.assertEqual(sorted(self.folder / file for file in files),
                         sorted((self.folder / "run/profile").iterdir()))
        self.assertFalse((self.folder / "run/control/profile").exists())
        said = self.beside("profile", "run", "--steps", 1)[0]
        self.assertEqual("run: asked for a trace of the next 1 step; its files are "
                         "run/profile/step-S-rank-R.json\n", said)
        self.wait_for(lambda: len(list((self.folder / "run/profile").glob("step-*-rank-?.json"))) == 4,
                      "a second trace")
        job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=LIMIT_S)
        self.assertEqual(75, job.returncode, err)
        self.assertRegex(err, rf"profile: 2 steps are in .*run/profile/step-{first}-rank-0\.json")
        _, err = self.beside("profile", "run", expect=2)
        self.assertIn("no run is running in this folder", err)

    def test_a_traced_run_equals_an_untraced_one_and_its_files_are_merged_and_read(self):
        control = self.folder / "traced/control"
        control.mkdir(parents=True)
        (control / "profile").write_text("3")  # asked for before its first step
        runs = ("traced", "plain")
        for name in runs:
            self.run_launcher("launch", "--nproc", 2, self.recipe(name, steps=12))
        traced, plain = (self.weights(name) for name in runs)
        self.assertEqual(plain, traced)
        files = sorted((self.folder / "traced/profile").iterdir())
        self.assertEqual(["step-2-rank-0.json", "step-2-rank-1.json"], [file.name for file in files])
        for rank, file in enumerate(files):
            self.check_trace(file, rank, [2, 3, 4])
        self.assertFalse((self.folder / "plain/profile").exists())
        self.assertEqual("both.json: 2 ranks\n", self.beside("trace", "merge", "traced", "-o", "both.json")[0])
        self.check_merged(self.folder / "both.json")
        self.beside("trace", "merge", *reversed(files), "-o", "again.json")
        apart = self.check_top("traced")
        self.assertEqual(apart, self.check_top(*files))
        self.assertEqual(apart["ranks"], self.check_top("both.json")["ranks"])
        text = self.beside("trace", "top", "traced", "--most", 1)[0]
        self.assertEqual(1, sum(line.startswith("operation") for line in text.splitlines()))
        self.assertIn("forward", text)

    @unittest.skipUnless(LONG, "SCALETRAIN_LONG=1 installs HolisticTraceAnalysis")
    def test_holistic_trace_analysis_reads_ranks_and_world_size(self):
        recipe = self.recipe("run", steps=8, profile={"after": 2, "steps": 2})
        self.run_launcher("launch", "--nproc", 2, recipe)
        shutil.copytree(self.folder / "run/profile", self.folder / "traces")
        done = subprocess.run([peer.python("traces"), "-c", READ_WITH_HTA, self.folder / "traces"],
                              check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.split("found ")[-1])
        self.assertEqual({"0", "1"}, found.keys())
        for rank, (info, has_events) in found.items():
            self.assertEqual((int(rank), 2), (info["rank"], info["world_size"]))
            self.assertTrue(has_events)

    def weights(self, run):
        checkpoint = self.folder / run / "checkpoints/latest"
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(checkpoint.glob("*.safetensors"))}

    def test_a_path_without_a_trace_is_named(self):
        (self.folder / "empty").mkdir()
        (self.folder / "other.json").write_text('{"loss": 1}')
        for arguments, code, message in (
                (("top", "empty"), 2, "empty: has no trace"),
                (("top", "other.json"), 65, 'other.json: is not a trace: it has no "traceEvents"'),
                (("merge", "missing.json", "-o", "out.json"), 65, "missing.json: cannot be opened")):
            with self.subTest(arguments):
                self.assertIn(message, self.beside("trace", *arguments, expect=code)[1])
        self.assertEqual(["empty", "other.json", "set"], sorted(path.name for path in self.folder.iterdir()))


if __name__ == "__main__":
    unittest.main()
