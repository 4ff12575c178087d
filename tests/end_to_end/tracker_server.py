"""An HTTP server for tests of exporters: MLflow's REST API and a webhook, with faults on request."""
import http.server
import json
import re
import threading
import urllib.parse

API = "/api/2.0/mlflow/"


class TrackerServer:
    """Listens on 127.0.0.1. `fault` holds for each request from then on:

    None: answers; "error": status 500; "cut": closes within the answer, after the request took effect;
    "latency": answers after `latency_s`, or only when the server is closed if that is None.
    """

    def __init__(self, port=0):
        self.fault = None
        self.latency_s = None
        self.experiments = {}  # {name: id}
        self.runs = {}         # {id: {"name", "experiment", "status", "tags", "params", "points"}}
        self.events = []       # bodies of POST /hook
        self.headers = []      # of all requests
        self.requests = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"tracker": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self):
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, path, body):
        """(status, answer) of a request."""
        with self._lock:
            if path == "/hook":
                self.events.append(body)
                return 200, {}
            call = path.removeprefix(API)
            name = re.sub(r"\W", "_", call.split("?")[0])
            return getattr(self, "_" + name)(body if body is not None else
                                             dict(urllib.parse.parse_qsl(call.partition("?")[2])))

    def _experiments_get_by_name(self, query):
        name = query["experiment_name"]
        if name not in self.experiments:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        return 200, {"experiment": {"experiment_id": self.experiments[name], "name": name}}

    def _experiments_create(self, body):
        self.experiments[body["name"]] = str(len(self.experiments) + 1)
        return 200, {"experiment_id": self.experiments[body["name"]]}

    def _runs_search(self, body):
        tag, value = re.fullmatch(r"tags\.`([\w.]+)` = '(\w+)'", body["filter"]).groups()
        found = [run for run, facts in self.runs.items() if facts["tags"].get(tag) == value]
        return 200, {"runs": [{"info": {"run_id": run}} for run in found]} if found else {}

    def _runs_create(self, body):
        run = f"run{len(self.runs)}"
        self.runs[run] = {"name": body["run_name"], "experiment": body["experiment_id"], "status": "RUNNING",
                          "tags": {tag["key"]: tag["value"] for tag in body["tags"]}, "params": {},
                          "points": {}}
        return 200, {"run": {"info": {"run_id": run}}}

    def _runs_log_batch(self, body):
        run = self.runs[body["run_id"]]
        if len(body.get("metrics", [])) > 1000 or len(body.get("params", [])) > 100:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE"}
        for param in body.get("params", []):
            if run["params"].setdefault(param["key"], param["value"]) != param["value"]:
                return 400, {"error_code": "INVALID_PARAMETER_VALUE"}
        for metric in body.get("metrics", []):  # a point that comes twice is one, as in MLflow's database
            key = (metric["step"], metric["timestamp"])
            run["points"].setdefault(metric["key"], {})[key] = float(metric["value"])
        return 200, {}

    def _runs_update(self, body):
        if body["run_id"] not in self.runs:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        self.runs[body["run_id"]]["status"] = body["status"]
        return 200, {}

    def wait(self):
        """Waits for the latency; True if the server was closed meanwhile."""
        return self._closed.wait(self.latency_s)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer(None)

    def do_POST(self):
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body):
        tracker = self.tracker
        tracker.requests += 1
        tracker.headers.append(dict(self.headers))
        fault = tracker.fault
        if fault == "latency" and tracker.wait():
            self.close_connection = True
            return
        status, answer = (500, {}) if fault == "error" else tracker.handle(self.path, body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text) + (100 if fault == "cut" else 0)))
        self.end_headers()
        self.wfile.write(text)
        if fault == "cut":
            self.close_connection = True

    def log_message(self, *_):
        pass
