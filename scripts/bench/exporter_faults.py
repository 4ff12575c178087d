"""The table of `exporters.py --faults`: a PyTorch loop with wandb or mlflow, and scaletrain, under the same faults.

Faults of a server: refused connections, 10 s latency, answers that are cut, status 500. Faults of a disk: full,
the folder removed while the loop trains, a locked SQLite file. wandb is online for the former and offline for the
latter; scaletrain writes offline runs only, so a server cannot reach it.
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import compare
import exporters

sys.path.insert(0, str(compare.ROOT / "tests"))
import free_port  # noqa: E402
from end_to_end.tracker_server import API, TrackerServer  # noqa: E402

PEERS = compare.ROOT / ".deps/peer-trackers"  # the loop's PyTorch is this interpreter's
SERVER_FAULTS = ["refused", "latency", "cut", "error"]
ROWS = [("mlflow", "none"), *(("mlflow", fault) for fault in SERVER_FAULTS), ("sqlite", "none"), ("sqlite", "locked"),
        ("wandb", "none"), *(("wandb", fault) for fault in SERVER_FAULTS), ("wandb", "full"), ("wandb", "removed")]
LATENCY_S = 10
FULL_KB = 16  # of the full disk
LOOK_S = 0.05
# scaletrain's name for a tracker that a row names otherwise.
OURS = {"sqlite": "trackio"}


class LoopServer(TrackerServer):
    """Answers the calls of MLflow's own client too, and others as a server that does not know them."""

    def handle(self, path, body):
        call = path.removeprefix(API).partition("?")[0]
        if path != "/hook" and not hasattr(self, "_" + re.sub(r"\W", "_", call)):
            return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": f"no {path}"}
        return super().handle(path, body)

    def _info(self, run):
        facts = self.runs[run]
        return {"run_id": run, "run_uuid": run, "run_name": facts["name"], "experiment_id": facts["experiment"],
                "status": facts["status"], "lifecycle_stage": "active", "artifact_uri": "mlflow-artifacts:/none"}

    def _runs_create(self, body):
        run = super()._runs_create({"run_name": "loop", "tags": [], **body})[1]["run"]["info"]["run_id"]
        return 200, {"run": {"info": self._info(run), "data": {}}}

    def _runs_get(self, query):
        return 200, {"run": {"info": self._info(query["run_id"]), "data": {}}}

    def _runs_log_metric(self, body):
        return self._runs_log_batch({"run_id": body["run_id"], "metrics": [body]})

    def _runs_update(self, body):
        super()._runs_update(body)
        return 200, {"run_info": self._info(body["run_id"])}


# A loop as users write it; `sys.argv`: tracker, steps.
LOOP = """
import sys, torch
tracker, steps = sys.argv[1], int(sys.argv[2])
if tracker == "wandb":
    import wandb
    wandb.init(project="bench")
    log, end = (lambda step, loss: wandb.log({"loss": loss}, step=step)), wandb.finish
else:
    import mlflow
    mlflow.start_run()
    log, end = (lambda step, loss: mlflow.log_metric("loss", loss, step=step)), mlflow.end_run
torch.set_num_threads(1)
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(192, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                            torch.nn.Linear(1024, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.0001)
print("training", flush=True)
for step in range(steps):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(32, 192)), torch.randint(0, 10, (32,)))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if step % 10 == 0:
        log(step, loss.item())
print("trained", flush=True)
end()
print("logged", flush=True)
"""


def on_full_disk(folder):
    """What a command is prefixed with, so that `folder` is a disk of FULL_KB in its own mount namespace."""
    folder.mkdir(parents=True, exist_ok=True)
    return ["unshare", "--mount", "sh", "-c",
            f'mount -t tmpfs -o size={FULL_KB}k tmpfs "{folder}" && exec "$@"', "sh"]


@contextlib.contextmanager
def removed(folder):
    """Removes a folder once, when files are in it."""
    is_over = threading.Event()

    def watch():
        while not is_over.wait(LOOK_S):
            if any(path.is_file() for path in folder.rglob("*")):
                shutil.rmtree(folder, ignore_errors=True)
                return

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextlib.contextmanager
def locked(path):
    """Locks an SQLite file for all other writers."""
    is_new = not path.exists()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        if is_new:
            database.execute("PRAGMA journal_mode = WAL")  # as trackio's own files
        database.execute("BEGIN IMMEDIATE")
        yield


@contextlib.contextmanager
def server_with(fault):
    """The address of a server with this fault."""
    server = LoopServer()
    server.latency_s = LATENCY_S
    server.fault = fault if fault in ("latency", "cut", "error") else None
    try:
        yield f"http://127.0.0.1:{free_port.free_port()}" if fault == "refused" else server.url
    finally:
        server.close()


@contextlib.contextmanager
def disk_with(fault, folder, database):
    """Applies a fault of a disk to `folder` or to the file `database`; yields a prefix for commands."""
    if fault == "full":
        yield on_full_disk(folder)
    elif fault == "removed":
        with removed(folder):
            yield []
    elif fault == "locked":
        with locked(database):
            yield []
    else:
        yield []


def peer_environment(tracker, fault, folder, url):
    offline = tracker == "wandb" and fault not in SERVER_FAULTS
    return {**os.environ, "WANDB_BASE_URL": url, "WANDB_API_KEY": "0" * 40, "WANDB_DIR": str(folder),
            "WANDB_MODE": "offline" if offline else "online", "GIT_PYTHON_REFRESH": "quiet",
            "MLFLOW_TRACKING_URI": f"sqlite:///{folder}/mlflow.db" if tracker == "sqlite" else url,
            "PYTHONPATH": str(next(PEERS.glob("lib/python*/site-packages")))}


def make_mlflow_database(environment, folder):
    """MLflow makes the tables of its file at the first use; the loop finds them."""
    subprocess.run([sys.executable, "-c", "import mlflow; mlflow.search_experiments()"], check=True, cwd=folder,
                   env=environment, capture_output=True)


def peer_row(tracker, fault, steps, limit_s, work):
    folder = work / "tracker"
    folder.mkdir()
    log = work / "log"
    with server_with(fault) as url:
        environment = peer_environment(tracker, fault, folder, url)
        if tracker == "sqlite":
            make_mlflow_database(environment, work)
        with disk_with(fault, folder, folder / "mlflow.db") as prefix, open(log, "w") as out:
            since = time.monotonic()
            process = subprocess.Popen([*prefix, sys.executable, "-c", LOOP, tracker, str(steps)], cwd=work,
                                       env=environment, stdout=out, stderr=out, start_new_session=True)
            try:
                end = f"exit {process.wait(limit_s)}"
            except subprocess.TimeoutExpired:
                end = f"stopped after {limit_s} s"
            seconds = time.monotonic() - since
            with contextlib.suppress(ProcessLookupError):  # wandb's own process may outlive the loop
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return end, seconds, peer_result(log.read_text(errors="replace"))


def peer_result(out):
    for word, text in (("logged\n", "trained"), ("trained\n", "trained, then hung or failed in the tracker"),
                       ("training\n", "hung or failed while training")):
        if word in out:
            break
    else:
        text = "did not begin to train"
    errors = re.findall(r"^.*(?:error|exception|no space|failed).*", out, re.M | re.I)
    said = re.sub(r"\x1b\[[0-9;]*m|\|", "", errors[-1]).strip()[:100] if errors else ""
    return f"{text}: {said}" if said else f"{text}, no error message"


def our_row(tracker, fault, steps, limit_s, work):
    name = OURS.get(tracker, tracker)
    path, run = exporters.recipe(work, steps, {"to": name})
    folder = run / "export" / name
    database = folder / "scaletrain.db"
    if fault == "locked":
        folder.mkdir(parents=True)
    with server_with(fault) as url, disk_with(fault, folder, database) as prefix:
        code, error, seconds, _ = exporters.launch(path, run, url, prefix, limit_s)
    (work / "log").write_text(error)
    exported = re.search(r"exported .*", error)
    end = f"stopped after {limit_s} s" if code is None else f"exit {code}"
    return end, seconds, exported[0] if exported else "no summary"


def table(folder, steps, limit_s, only):
    exporters.shards(folder)
    print("| tracker | fault | program | end | wall s | result |\n|---|---|---|---|---|---|")
    for tracker, fault in ROWS:
        if only not in f"{tracker} {fault}":
            continue
        for program, row in (("PyTorch loop", peer_row), ("scaletrain", our_row)):
            work = pathlib.Path(tempfile.mkdtemp(dir=folder))
            (work / "shards").symlink_to(folder / "shards")
            end, seconds, result = row(tracker, fault, steps, limit_s, work)
            shown = {"sqlite": "mlflow on SQLite" if row is peer_row else "trackio"}.get(tracker, tracker)
            print(f"| {shown} | {fault} | {program} | {end} | {seconds:.1f} | {result} |", flush=True)
