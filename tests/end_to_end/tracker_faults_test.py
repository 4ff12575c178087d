"""Faults of trackers: the exporter ends by itself, counts what was lost, and a run is as without it."""
import contextlib
import json
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import unittest

import free_port
from end_to_end import support
from end_to_end.tracker_server import TrackerServer

FILES = ["tensorboard", "csv", "wandb", "trackio", "prometheus", "mlperf"]
MOST_BYTES = 512  # of a file, on a full disk


def record(step):
    return {"event": "train", "attempt": 0, "step": step, "epoch": 0, "samples": 16 * step, "loss": 1 / step,
            "lr": 0.05, "time": 1000.5 + step}


class Export:
    """scaletrain-export on a folder as a run leaves it."""

    def __init__(self, test, count=20):
        self.test = test
        self.run = test.folder / "run"
        self.run.mkdir()
        (self.run / "recipe.json").write_text('{"name": "run", "optimizer": {"lr": 0.05}}')
        (self.run / "finished.json").write_text("{}")
        self.add(1, count)
        (self.run / "journal.jsonl").write_text(
            '{"event": "attempt_started", "attempt": 0, "ranks": 1, "time": 1}\n'
            '{"event": "finished", "attempt": 0, "step": 20, "time": 2}\n')

    def add(self, first, last):
        with open(self.run / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.writelines(json.dumps(record(step)) + "\n" for step in range(first, last + 1))

    def start(self, *arguments, env=None, **popen):
        """The exporter, which ends when its standard input is closed."""
        process = subprocess.Popen(
            [support.BIN / "scaletrain-export", "--run", self.run, *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})}, **popen)
        self.test.addCleanup(process.communicate)
        self.test.addCleanup(process.kill)
        return process

    def finish(self, process, expect=0):
        """The lines that a launcher reads."""
        out, err = process.communicate(timeout=support.TIMEOUT_S)
        self.test.assertEqual(expect, process.returncode, f"{out}\n{err}")
        return out.splitlines()

    def lines(self, *arguments, expect=0, **popen):
        return self.finish(self.start(*arguments, **popen), expect)


class FaultsTest(support.RunTestCase):
    def server(self, fault=None):
        server = TrackerServer()
        server.fault = fault
        self.addCleanup(server.close)
        return server

    def assert_warned_once(self, lines, start, times=1):
        self.assertEqual(times, sum(line.startswith(f"warning: {start}") for line in lines), lines)

    def test_a_server_that_is_away_loses_nothing_and_gets_all_of_it_later(self):
        for fault in ("refused", "latency", "cut", "error"):
            with self.subTest(fault):
                server = self.server(fault)
                port, = free_port.free_ports(1)
                away = f"http://127.0.0.1:{port}" if fault == "refused" else server.url
                export = Export(self)
                lines = export.lines("--to", "mlflow", env={"MLFLOW_TRACKING_URI": away})
                # An answer that is still awaited is no failure yet.
                self.assert_warned_once(lines, "export to mlflow: " + away, 0 if fault == "latency" else 1)
                self.assertIn("exported 20 records to mlflow (20 unsent)", lines)
                self.assertIn(f"send the rest with: scaletrain export --once --run {export.run} --to mlflow", lines)
                server.fault = None
                lines = export.lines("--once", "--to", "mlflow",
                                     env={"MLFLOW_TRACKING_URI": server.url if fault != "latency"
                                          else self.server().url})
                self.assertEqual(["exported 20 records to mlflow"], lines)
                if fault != "latency":
                    run, = server.runs.values()
                    self.assertEqual({step: 1 / step for step in range(1, 21)},
                                     {step: value for (step, _), value in run["points"]["Loss/train"].items()})
                    self.assertEqual("FINISHED", run["status"])
                shutil.rmtree(export.run)

    def test_a_server_that_goes_and_comes_back_gets_each_record_once(self):
        server = self.server()
        export = Export(self)
        process = export.start("--to", "mlflow", env={"MLFLOW_TRACKING_URI": server.url})

        def count():
            return sum(len(run["points"].get("Loss/train", {})) for run in server.runs.values())

        support.wait_until(lambda: count() == 20, "the first records")
        server.fault = "error"
        export.add(21, 30)
        seen = server.requests
        support.wait_until(lambda: server.requests > seen, "a request that fails")
        server.fault = None
        self.assertEqual("exported 30 records to mlflow", export.finish(process)[-1])
        run, = server.runs.values()
        self.assertEqual(list(range(1, 31)), sorted(step for step, _ in run["points"]["Loss/train"]))
        self.assertEqual({"name": "run", "optimizer.lr": "0.05"}, run["params"])

    def test_once_ends_with_74_if_a_tracker_takes_nothing(self):
        export = Export(self)
        (export.run / "export").write_text("a file in the place of the folder")
        lines = export.lines("--once", "--to", "csv", expect=74)
        self.assertIn("exported 20 records to csv (20 lost)", lines)

    def test_events_that_a_webhook_does_not_take_are_counted(self):
        for fault in ("refused", "latency", "cut", "error"):
            with self.subTest(fault):
                server = self.server(fault)
                port, = free_port.free_ports(1)
                url = f"http://127.0.0.1:{port}" if fault == "refused" else server.url
                export = Export(self)
                lines = export.lines("--webhook", url + "/hook")
                self.assert_warned_once(lines, f"events to webhook: {url}: ", 0 if fault == "latency" else 1)
                self.assertIn("sent 2 events to webhook (2 lost)", lines)
                shutil.rmtree(export.run)

    def test_clients_of_the_prometheus_port_that_stall_or_cut_lose_nothing(self):
        for fault in ("latency", "cut"):
            with self.subTest(fault):
                port, = free_port.free_ports(1)
                export = Export(self)
                process = export.start("--to", "prometheus", "--port", port)

                def connected():
                    try:
                        return socket.create_connection(("127.0.0.1", port))
                    except ConnectionRefusedError:
                        return None

                client = support.wait_until(connected, "the port")
                self.addCleanup(client.close)
                client.sendall(b"GET /met")
                if fault == "cut":
                    client.close()
                self.assertEqual(["exported 20 records to prometheus"], export.finish(process))
                shutil.rmtree(export.run)

    def test_a_prometheus_port_in_use_is_one_warning(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            lines = Export(self).lines("--to", "prometheus", "--port", port)
        self.assert_warned_once(lines, f"export to prometheus: 127.0.0.1:{port}: cannot listen there")
        self.assertIn("exported 20 records to prometheus (20 lost)", lines)

    def lost_of_all(self, count):
        return f"exported {count} records to " + ", ".join(f"{name} ({count} lost)" for name in FILES)

    def all_files(self):
        return [word for name in FILES for word in ("--to", name)]

    def test_a_full_disk_loses_the_records_and_nothing_else(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))

        lines = Export(self, 200).lines(*self.all_files(), preexec_fn=limit)
        self.assertIn(self.lost_of_all(200), lines)
        for name in FILES:
            self.assert_warned_once(lines, f"export to {name}: ")

    def test_writes_that_take_ten_seconds_do_not_hold_up_the_end(self):
        lines = Export(self).lines(*self.all_files(), env={**self.faulty_libc(), "FAULTY_SLOW": "/run/export/"})
        self.assertIn(self.lost_of_all(20), lines)

    def has_all_files(self, export, count):
        """True if each file exporter has written its first records."""
        folder = export.run / "export"
        try:
            with contextlib.closing(sqlite3.connect(f"file:{folder}/trackio/scaletrain.db?mode=ro", uri=True)) as data:
                rows, = data.execute("SELECT count(*) FROM metrics").fetchone()
            events, = (folder / "tensorboard").glob("events.*")
            offline, = (folder / "wandb").glob("*/*.wandb")
            return (rows == count and len((folder / "metrics.csv").read_text().splitlines()) == count + 1
                    and len((folder / "mlperf.log").read_text().splitlines()) > count
                    and (folder / "scaletrain_run.prom").exists()
                    and events.stat().st_size > 1000 and offline.stat().st_size > 1000)
        except (sqlite3.OperationalError, FileNotFoundError, ValueError):  # some are not there yet
            return False

    def test_a_folder_that_is_removed_loses_what_comes_afterwards(self):
        export = Export(self)
        process = export.start(*self.all_files())
        support.wait_until(lambda: self.has_all_files(export, 20), "the first records")
        shutil.rmtree(export.run / "export")
        export.add(21, 30)
        lines = export.finish(process)
        # The textfile is written anew each time.
        names = ", ".join(name if name == "prometheus" else f"{name} (10 lost)" for name in FILES)
        self.assertIn(f"exported 30 records to {names}", lines)

    def locked(self, export):
        """The database of trackio, locked by another process."""
        folder = export.run / "export/trackio"
        folder.mkdir(parents=True)
        database = sqlite3.connect(folder / "scaletrain.db", isolation_level=None, check_same_thread=False)
        self.addCleanup(database.close)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("BEGIN IMMEDIATE")
        return database

    def test_a_locked_sqlite_file_gets_the_records_when_it_is_free(self):
        export = Export(self)
        database = self.locked(export)
        process = export.start("--to", "trackio")
        self.assertIn("database is locked; it is tried again", process.stdout.readline())
        database.execute("COMMIT")
        self.assertEqual(["exported 20 records to trackio"], export.finish(process))
        self.assertEqual(20, database.execute("SELECT count(*) FROM metrics").fetchone()[0])

    def test_a_sqlite_file_that_stays_locked_loses_the_records(self):
        export = Export(self)
        self.locked(export)
        self.assertIn("exported 20 records to trackio (20 lost)", export.lines("--to", "trackio"))

    def test_a_run_with_faulty_trackers_ends_as_one_without(self):
        self.run_scaletrain("launch", "--nproc", 1, self.recipe("plain"))
        server = self.server("error")
        run = self.folder / "faulty"
        run.mkdir()
        (run / "export").write_text("a file in the place of the folder")
        port, = free_port.free_ports(1)
        error = self.run_scaletrain(
            "launch", "--nproc", 1, self.recipe("faulty", log={
                "every": {"steps": 1}, "to": [*FILES, "mlflow"], "webhook": server.url + "/hook",
                "on_event": "exit 1"}),
            env={"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}"}).stderr
        count = len((run / "metrics.jsonl").read_text().splitlines())
        pictures = len((run / "media/index.jsonl").read_text().splitlines())
        self.assertGreater(pictures, 1)
        extra = {"tensorboard": f", {pictures} pictures lost"}
        lost = ", ".join(f"{name} ({count} lost{extra.get(name, str())})" for name in FILES)
        self.assertIn(f"exported {count} records to {lost}, mlflow ({count} unsent)\n", error)
        self.assertRegex(error, r"sent (\d+) events to webhook \(\1 lost\), on_event \(\1 lost\)\n")
        for name in [*FILES, "mlflow"]:
            self.assertEqual(1, error.count(f"warning: export to {name}: "), error)
        self.assertEqual(support.inspect(self.folder / "plain")["model_digest"],
                         support.inspect(run)["model_digest"])


if __name__ == "__main__":
    unittest.main()
