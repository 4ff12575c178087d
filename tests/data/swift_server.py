"""A real object store: OpenStack Swift with its S3 interface, from .deps/swift, in a folder."""
import hashlib
import hmac
import http.client
import os
import pathlib
import pwd
import signal
import socket
import subprocess
import time

from free_port import free_ports

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".deps/swift/bin/python"
SERVERS = pathlib.Path(__file__).with_name("swift_servers.py")
KEY_ID = "test:tester"
SECRET = "hunter2-swift-secret"  # tests look for it in everything that is written
REGION = "us-east-1"
PIPELINE = ("catch_errors gatekeeper healthcheck proxy-logging cache listing_formats bulk s3api "
            "tempauth slo dlo versioned_writes symlink proxy-logging proxy-server")
FILTERS = {"catch_errors": "catch_errors", "gatekeeper": "gatekeeper",
           "healthcheck": "healthcheck", "proxy-logging": "proxy_logging",
           "listing_formats": "listing_formats", "bulk": "bulk", "s3api": "s3api",
           "tempauth": "tempauth", "slo": "slo", "dlo": "dlo",
           "versioned_writes": "versioned_writes", "symlink": "symlink"}
OPTIONS = {"tempauth": f"user_test_tester = {SECRET} .admin\n",
           "s3api": f"location = {REGION}\ns3_acl = no\n"}


class Swift:
    """One proxy, account, container and object server; ends with stop()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.port, *self.backends = free_ports(4)
        self._configure()
        self._start()
        self._wait()

    def _configure(self):
        (self.folder / "devices/sda").mkdir(parents=True)
        (self.folder / "swift.conf").write_text(
            "[swift-hash]\nswift_hash_path_suffix = tests\n"
            "[storage-policy:0]\nname = gold\ndefault = yes\n")
        default = (f"[DEFAULT]\nbind_ip = 127.0.0.1\nworkers = 0\nmount_check = false\n"
                   f"user = {pwd.getpwuid(os.geteuid()).pw_name}\nswift_dir = {self.folder}\n"
                   f"devices = {self.folder}/devices\ndisable_fallocate = true\n")
        for kind, port in zip(("account", "container", "object"), self.backends):
            (self.folder / f"{kind}.conf").write_text(
                default + f"bind_port = {port}\n[pipeline:main]\npipeline = {kind}-server\n"
                f"[app:{kind}-server]\nuse = egg:swift#{kind}\n")
        filters = "".join(f"[filter:{name}]\nuse = egg:swift#{egg}\n{OPTIONS.get(name, '')}"
                          for name, egg in FILTERS.items())
        filters += "[filter:cache]\npaste.filter_factory = swift_servers:cache_filter\n"
        (self.folder / "proxy.conf").write_text(
            default + f"bind_port = {self.port}\n[pipeline:main]\npipeline = {PIPELINE}\n{filters}"
            "[app:proxy-server]\nuse = egg:swift#proxy\nallow_account_management = true\n"
            "account_autocreate = true\n")

    def _start(self):
        ports = dict(zip(("account", "container", "object"), map(str, self.backends)))
        with open(self.folder / "start.log", "wb") as log:
            self.server = subprocess.Popen(
                [PYTHON, SERVERS, self.folder, *sum(ports.items(), ())],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        with self.server.stdout as stdout:
            self.processes = list(map(int, stdout.readline().split()))

    def _wait(self):
        """Until all of them answer: one that does not when a request needs it is left out by the
        proxy for a minute."""
        deadline = time.monotonic() + 120
        waiting = list(self.backends)
        while True:
            try:
                while waiting:
                    socket.create_connection(("127.0.0.1", waiting[-1]), timeout=5).close()
                    waiting.pop()
                if self.request("GET", "/")[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline or self.server.poll() is not None:
                self.stop()
                logs = "\n".join(f.read_text()[-2000:] for f in self.folder.glob("*.log"))
                raise RuntimeError(f"Swift does not start:\n{logs}")
            time.sleep(0.1)

    def stop(self):
        for process in self.processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.server.wait()

    def request(self, method, path, body=b""):
        """(status, body), signed here independently of the program under test."""
        host = f"127.0.0.1:{self.port}"
        headers = sign(method, host, path, body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def put(self, path, body=b""):
        """Makes "/bucket" or "/bucket/key"."""
        status, text = self.request("PUT", path, body)
        if status != 200:
            raise RuntimeError(f"PUT {path}: {status} {text}")


def sign(method, host, path, body):
    """The headers of an AWS Signature Version 4 for a path, or one with "?name=value"."""
    def mac(key, text):
        return hmac.new(key, text.encode(), hashlib.sha256).digest()
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    digest = hashlib.sha256(body).hexdigest()
    names = "host;x-amz-content-sha256;x-amz-date"
    path, _, query = path.partition("?")
    canonical = (f"{method}\n{path}\n{query}\nhost:{host}\nx-amz-content-sha256:{digest}\n"
                 f"x-amz-date:{now}\n\n{names}\n{digest}")
    scope = f"{now[:8]}/{REGION}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{SECRET}".encode()
    for part in (now[:8], REGION, "s3", "aws4_request"):
        key = mac(key, part)
    return {"Host": host, "x-amz-date": now, "x-amz-content-sha256": digest,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, "
                             f"SignedHeaders={names}, Signature={mac(key, text).hex()}"}


def environment(endpoint):
    """Variables of a client; nothing of this machine's own configuration."""
    return {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": endpoint, "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
            "AWS_CONFIG_FILE": "/nonexistent", "no_proxy": "127.0.0.1"}
