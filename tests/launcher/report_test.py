"""scaletrain report: one page that asks for nothing, whose data are those of metrics.jsonl."""

import base64
import html.parser
import json
import shutil
import subprocess
import unittest

from launcher.runs_support import RunsTestCase, evaluation, train

HOSTILE = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>"


class Page(html.parser.HTMLParser):
    """The elements of a page, the text of each script, and what an attribute would ask a server for."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.requests, self.ids = [], [], [], set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append("")
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            if name in ("src", "href", "action") and not value.startswith("data:"):
                self.requests.append(value)

    def handle_data(self, text):
        if self.tags and self.tags[-1] == "script" and self.cdata_elem == "script":
            self.scripts[-1] += text


class Report(RunsTestCase):
    def report(self, *runs):
        page = self.folder / "page.html"
        self.run_launcher("report", *runs, "-o", page)
        return page.read_text()

    def data_of(self, text):
        return json.loads(Page(text).scripts[0])

    def test_the_data_of_the_page_are_those_of_the_metrics(self):
        run = self.write_run("a", [train(step, loss=1 / 3 + step) for step in (1, 10, 20)] + [evaluation(20, 2 / 3)])
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        shown = self.data_of(self.report(run))["runs"][0]
        for field in ("step", "epoch", "samples", "loss", "lr", "grad_norm", "samples_per_s", "memory_bytes", "time"):
            self.assertEqual([record[field] for record in records if record["event"] == "train"],
                             shown["train"][field], field)
        self.assertEqual({"label": "val top-1", "step": [20], "value": [2 / 3]}, shown["eval"]["val"]["top1"])
        self.assertEqual("finished", shown["state"])

    def test_the_highest_attempt_of_a_repeated_step_counts_and_an_incomplete_line_is_skipped(self):
        run = self.write_run("a", [train(10), train(20), train(20, attempt=1, loss=7.0), train(30, attempt=1)])
        with open(run / "metrics.jsonl", "a") as file:
            file.write('{"event": "train", "ste')
        shown = self.data_of(self.report(run))["runs"][0]
        self.assertEqual([10, 20, 30], shown["train"]["step"])
        self.assertEqual(7.0, shown["train"]["loss"][1])
        self.assertEqual(2, sum(event["event"] == "start" for event in shown["events"]))

    def test_the_page_asks_for_nothing_and_names_the_licence(self):
        text = self.report(self.write_run("a"))
        page = Page(text)
        self.assertEqual([], page.requests)
        self.assertNotIn("sourceMappingURL", text)
        self.assertIn("default-src 'none'", text)
        self.assertIn("Permission is hereby granted, free of charge", text)
        self.assertIn("dygraphs 2.2.1", text)
        self.assertIn("prefers-color-scheme", text)
        self.assertEqual(3, len(page.scripts))

    def test_every_element_that_the_script_asks_for_is_there(self):
        page = Page(self.report(self.write_run("a")))
        self.assertLessEqual({"data", "title", "figures", "controls", "smoothing", "smoothing-value", "axis", "log",
                              "reset", "shown", "main-charts", "small-charts", "time", "predictions",
                              "pictures", "pictures-section",
                              "predictions-section", "samples", "samples-section", "differences",
                              "differences-section", "recipes", "environments", "events", "footer"}, page.ids)

    def test_texts_of_a_run_are_no_markup(self):
        run = self.write_run("a", description=HOSTILE)
        (run / "predictions-test.csv").write_text(
            "key,label,predicted,probability\r\n" +
            "k1,\"" + HOSTILE.replace('"', '""') + "\",b,0.75\r\nk2,b,b,0.5\r\n'=k3,'@b,b,0.25\r\n")
        (run / "samples.txt").write_text(HOSTILE)
        text = self.report(run)
        page = Page(text)
        self.assertEqual(3, len(page.scripts))
        self.assertNotIn("img", page.tags)
        shown = self.data_of(text)["runs"][0]
        self.assertEqual([{"file": "samples.txt", "text": HOSTILE}], shown["samples"])
        (predictions,) = shown["predictions"]
        self.assertEqual(("test", 3, 1), tuple(predictions[key] for key in ("name", "count", "right")))
        self.assertEqual({"b", "@b", HOSTILE}, set(predictions["classes"]))
        self.assertEqual([("k1", HOSTILE, "b", None), ("=k3", "@b", "b", None)],
                         [tuple(one[key] for key in ("key", "label", "predicted", "image"))
                          for one in predictions["worst"]])

    def test_the_newest_picture_of_each_name_is_shown_and_none_from_elsewhere(self):
        run = self.write_run("a")
        (run / "media").mkdir()
        png = b"\x89PNG\r\n\x1a\nof a picture"
        lines = []
        for name, step, file in (("train/batch", 1, "first.png"), ("val/worst", 20, "old.png"),
                                 ("val/worst", 40, "new.png"), ("test/worst", 40, "absent.png"),
                                 ("other", 1, "../../outside.png")):
            if file in ("first.png", "old.png", "new.png"):
                (run / "media" / file).write_bytes(png + file.encode())
            lines.append({"format": 1, "name": name, "file": file, "attempt": 0, "step": step, "columns": 2,
                          "captions": [HOSTILE, "dog"], "time": 1000.0})
        (self.folder / "outside.png").write_bytes(png)
        (run / "media/index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"name": "tor')
        text = self.report(run)
        shown = self.data_of(text)["runs"][0]["pictures"]
        self.assertEqual([("train/batch", 1), ("val/worst", 40)], [(one["name"], one["step"]) for one in shown])
        self.assertEqual(png + b"new.png", base64.b64decode(shown[1]["image"].partition(",")[2]))
        self.assertEqual([HOSTILE, "dog"], shown[0]["captions"])
        self.assertNotIn("img", Page(text).tags)

    def test_no_environment_variable_is_in_the_page(self):
        self.assertNotIn("SECRET_OF_TEST", self.report(self.write_run("a")))

    def test_keys_in_which_runs_differ(self):
        first = self.write_run("a")
        second = self.write_run("b", name="a", optimizer={"name": "adamw", "lr": 0.002})
        self.assertEqual([{"key": "optimizer.lr", "values": [0.001, 0.002]}],
                         self.data_of(self.report(first, second))["differences"])

    def test_a_run_of_10_000_logged_steps_keeps_all_of_them(self):
        text = self.report(self.write_run("a", [train(step) for step in range(1, 10001)]))
        self.assertEqual(10000, len(self.data_of(text)["runs"][0]["train"]["step"]))

    def test_a_folder_without_a_run_is_refused(self):
        done = self.run_launcher("report", self.folder, expect=2)
        self.assertIn("holds no run", done.stderr)
        self.assertFalse((self.folder / "report.html").exists())

    @unittest.skipUnless(shutil.which("node"), "Node.js is not installed")
    def test_the_scripts_are_valid(self):
        for number, script in enumerate(Page(self.report(self.write_run("a"))).scripts[1:]):
            file = self.folder / f"script{number}.js"
            file.write_text(script)
            done = subprocess.run(["node", "--check", file], capture_output=True, text=True, timeout=60)
            self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
