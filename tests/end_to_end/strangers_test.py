"""Strangers at the sockets and files of a job: idle and garbage connections, another local user, and a
network of its own from which a one-node job cannot be seen."""

import hashlib
import hmac
import json
import os
import pathlib
import re
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
import unittest

from end_to_end import support
from end_to_end.hosts import Hosts, skip_unless_available
from free_port import free_port

CONNECTIONS = 1000 if support.LONG else 60  # of each kind, at each port
MOST_THREADS = 16 + 1  # of strangers, and one that the other launcher's own connection may take
STRANGER = "nobody"
LISTENS = "0A"  # in /proc/net/tcp


def listening(pids):
    """The listening TCP sockets of processes: {(address, port): pid}."""
    owners = {}
    for pid in pids:
        for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            try:
                if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)):
                    owners.setdefault(found.group(1), pid)
            except FileNotFoundError:
                continue  # closed meanwhile
    sockets = {}
    for family, name in ((socket.AF_INET, "tcp"), (socket.AF_INET6, "tcp6")):
        for line in pathlib.Path(f"/proc/{next(iter(pids))}/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and words[9] in owners:
                digits, port = words[1].split(":")
                words_of_4 = [bytes.fromhex(digits[i:i + 8])[::-1] for i in range(0, len(digits), 8)]
                address = socket.inet_ntop(family, b"".join(words_of_4))
                sockets[address, int(port, 16)] = owners[words[9]]
    return sockets


def client_address(address):
    return {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}.get(address, address.removeprefix("::ffff:"))


def knows(secret, address, port):
    """Whether a replica server accepts `secret`: what lib/replica/secret.h says a client sends."""
    def proof(side, theirs, own):
        return hmac.new(secret.encode(), f"{side}\n{theirs}\n{own}".encode(), hashlib.sha256).hexdigest()

    with socket.create_connection((address, port), 3) as connection:
        lines = connection.makefile("rb")
        try:
            theirs, own = lines.readline().decode().strip(), secrets.token_hex(32)
            connection.sendall(f"{own} {proof('client', theirs, own)}\n".encode())
            return lines.readline().decode().strip() == proof("server", theirs, own)
        except (TimeoutError, ConnectionError):
            return False  # another server, which waits for the client's first words


class JobTestCase(support.RunTestCase):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)  # others find whatever its files' modes show
        self.run_folder = self.folder / "job"

    def write_recipe(self, **changes):
        return self.recipe("job", steps=5000, threads=1, batch={"global": 32, "per_device": 8},
                           data={"train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
                                 "image_size": 16, "index_cache": str(self.folder / "index")}, **changes)

    def start_nodes(self):
        """Two launchers of a job with peer checkpoints, when there is one."""
        self.port = free_port()
        recipe = self.write_recipe(checkpoint={"every": {"steps": 5}, "replicate": {"nodes": 1}})
        self.nodes = [self.start("launch", *self.words(node), recipe, env={"SCALETRAIN_FAULT": "slows@1"})
                      for node in range(2)]
        support.wait_until(lambda: self.lines("replica"), "a checkpoint in memory")

    def words(self, node):
        return ["--nnodes", "2", "--node-rank", node, "--master-addr", "127.0.0.1", "--master-port", self.port]

    def lines(self, event):
        try:
            text = (self.run_folder / "metrics.jsonl").read_text()
        except FileNotFoundError:
            return []
        lines = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
        return [line for line in lines if line["event"] == event]

    def pids(self):
        return {pid for node in self.nodes for pid in support.pids_with(node.marker)}

    def check_unharmed(self):
        """The job trains on in its first attempt, and saves to memory, until it is stopped."""
        for event in ("train", "replica"):
            known = len(self.lines(event))
            support.wait_until(lambda: len(self.lines(event)) > known + 1, f"more of {event}")
        self.nodes[0].send_signal(signal.SIGTERM)
        for node in self.nodes:
            out, err = node.communicate(timeout=support.TIMEOUT_S)
            self.assertEqual(75, node.returncode, out + err)
        self.assertEqual({0}, {line["attempt"] for line in self.lines("train")})


class ConnectionsTest(JobTestCase):
    def threads(self, pids):
        """The number of threads of each process that still runs."""
        counts = {}
        for pid in pids:
            try:
                counts[pid] = len(os.listdir(f"/proc/{pid}/task"))
            except FileNotFoundError:
                continue
        return counts

    def hold(self, address, port, count, words):
        """Connections to a port; what a server closes at once counts too."""
        held = []
        for _ in range(count):
            connection = socket.create_connection((client_address(address), port), 30)
            held.append(connection)
            try:
                connection.sendall(words)
            except OSError:
                continue
        return held

    def test_idle_and_garbage_connections_leave_a_job_unharmed(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.start_nodes()
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # of this process, not of the job
        pids = self.pids()
        sockets = listening(pids)
        self.assertGreater(len(sockets), 2)
        before = self.threads(pids)
        for (address, port), owner in sorted(sockets.items()):
            held = self.hold(address, port, CONNECTIONS, b"")
            held += self.hold(address, port, CONNECTIONS, secrets.token_bytes(64) + b"\n")
            for pid, count in self.threads(pids).items():
                self.assertLessEqual(count, before[pid] + MOST_THREADS, f"{support.command_line(pid)}, {port}")
            self.assertEqual([None, None], [node.poll() for node in self.nodes],
                             f"port {port} of {support.command_line(owner)}")
            for connection in held:
                connection.close()
        self.check_unharmed()


@unittest.skipUnless(os.geteuid() == 0, "needs root for a second local user")
class OtherUserTest(JobTestCase):
    def as_stranger(self, *command, **options):
        return subprocess.run([str(word) for word in command], user=STRANGER, group="nogroup", extra_groups=[],
                              capture_output=True, text=True, timeout=support.TIMEOUT_S, **options)

    def readable(self):
        """Every text that the other user can read of the run folder and of the job's processes."""
        script = ("import os, pathlib, sys\n"
                  "for folder in map(pathlib.Path, sys.argv[1:]):\n"
                  "    names = ('environ', 'cmdline', 'mem', 'maps', 'auxv')\n"
                  "    paths = [folder / name for name in names] if folder.parent.name == 'proc' else [\n"
                  "        pathlib.Path(at, name) for at, _, found in os.walk(folder) for name in found]\n"
                  "    for path in paths:\n"
                  "        try:\n"
                  "            sys.stdout.write(path.read_bytes()[:1 << 20].decode('latin-1'))\n"
                  "        except OSError:\n"
                  "            pass\n"
                  "    try:\n"
                  "        links = list((folder / 'fd').iterdir())\n"
                  "    except OSError:\n"
                  "        continue\n"
                  "    for link in links:\n"
                  "        sys.stdout.write('readable descriptor ' + str(link) + '\\n')\n")
        processes = [f"/proc/{pid}" for pid in self.pids()]
        done = self.as_stranger(sys.executable, "-c", script, self.run_folder, *processes, cwd="/")
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def test_another_user_neither_reads_nor_writes_nor_stops(self):
        self.start_nodes()
        launchers = {node.pid for node in self.nodes}
        sockets = listening(self.pids())
        secret = (self.run_folder / "peer-secret").read_text().strip()
        servers = [(client_address(address), port) for (address, port), pid in sockets.items()
                   if pid in launchers and port != self.port]
        accepting = [place for place in servers if knows(secret, *place)]
        self.assertEqual(2, len(accepting), sockets)  # one of each node
        text = self.readable()
        self.assertIn('"world_size"', text)  # environment.json is for all
        self.assertNotIn("readable descriptor", text)
        self.assertNotIn(secret, text)
        for word in {"", *re.findall(r"[0-9a-f]{32,}", text)}:
            self.assertFalse(knows(word, *accepting[0]), word)
        # Every program of ours, with the addresses of the job and a secret of its own.
        home = self.folder / "stranger"
        home.mkdir()
        (home / "secret").write_text("0" * 64)
        (home / "secret").chmod(0o600)
        for path in (home, home / "secret"):
            os.chown(path, 65534, 65534)
        recipe = json.loads((self.folder / "job.json").read_text())
        recipe["data"]["index_cache"] = str(home / "index")
        own = home / "own.json"
        own.write_text(json.dumps({**recipe, "output": str(home / "run")}))
        environment = {**os.environ, "SCALETRAIN_SECRET_FILE": str(home / "secret"), "HOME": str(home)}
        for words in (["launch", *self.words(1), "--join-timeout", "5s", own],
                      ["launch", *self.words(1), "--join-timeout", "5s", self.folder / "job.json"],
                      ["resume", self.run_folder]):
            done = self.as_stranger(support.SCALETRAIN, *words, cwd=home, env=environment)
            self.assertNotEqual(0, done.returncode, done.stdout + done.stderr)
        for pid in launchers:
            done = self.as_stranger("kill", "-9", pid, cwd="/")
            self.assertNotEqual(0, done.returncode)
        self.check_unharmed()


@skip_unless_available()
class OtherNetworkTest(JobTestCase):
    SCAN = ("import socket, sys\n"
            "for port in map(int, sys.stdin.read().split()):\n"
            "    with socket.socket() as connection:\n"
            "        connection.settimeout(5)\n"
            "        if connection.connect_ex((sys.argv[1], port)) == 0:\n"
            "            print(port)\n")

    def test_a_one_node_job_is_not_seen_from_another_network(self):
        hosts = Hosts(self, 2)
        marker = f"SCALETRAIN_TEST_MARKER={self.id()}-{time.monotonic_ns()}"
        name, value = marker.split("=")
        job = subprocess.Popen(
            hosts.command(0, support.SCALETRAIN, "launch", "--nproc", 2, self.write_recipe(dist={"cpu": "gloo"})),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=self.folder, env={**os.environ, "SCALETRAIN_FAULT": "slows@1", name: value})
        job.marker = marker
        self.addCleanup(self._end, job)
        support.wait_until(lambda: self.lines("train"), "the first step")
        sockets = listening(set(support.pids_with(marker)))
        self.assertTrue(sockets)
        for address, port in sockets:
            self.assertTrue(client_address(address).startswith("127.") or address == "::1", (address, port))
        ports = range(1, 65536) if support.LONG else sorted({port for _, port in sockets})
        done = subprocess.run(
            hosts.command(1, sys.executable, "-c", self.SCAN, hosts.addresses[0]), check=True,
            input=" ".join(map(str, ports)), capture_output=True, text=True)
        self.assertEqual("", done.stdout)
        job.send_signal(signal.SIGTERM)
        out, _ = job.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(75, job.returncode, out)


if __name__ == "__main__":
    unittest.main()
