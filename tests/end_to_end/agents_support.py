"""Agents of an elastic job, on hosts in network namespaces or all on this machine."""

import collections
import subprocess
import time

from end_to_end.hosts import Hosts
from end_to_end.support import SCALETRAIN
from free_port import free_port
from launcher.launch_support import LaunchTestCase

RECOVERY_S = 60
PORT = 29471

# Tells which round it is part of, and stays until the test is done.
WORKER = ("echo $MASTER_PORT $RANK >>$OUT.new.$$; mv $OUT.new.$$ $OUT/$MASTER_PORT-$RANK-$WORLD_SIZE;"
          "while [ ! -e $OUT/done ]; do sleep 0.05; done")


class AgentsTestCase(LaunchTestCase):
    HOSTS = 4  # 0: this machine, by its loopback address
    NNODES = "2:4"
    FLAGS = ["--heartbeat-timeout", "3s", "--last-call", "1s", "--join-timeout", "60s",
             "--grace", "2s"]
    ENV = {}

    def setUp(self):
        super().setUp()
        (self.folder / "out").mkdir()
        if self.HOSTS:
            self.hosts = Hosts(self, self.HOSTS)
            self.endpoints = ",".join(f"{address}:{PORT}" for address in self.hosts.addresses)
        else:
            self.endpoints = f"127.0.0.1:{free_port()}"

    def agent(self, host, *words, flags=()):
        words = words or ("--", "sh", "-c", WORKER)
        command = [SCALETRAIN, "launch", "--nnodes", self.NNODES, "--rdzv-endpoint", self.endpoints,
                   "--rdzv-backend", "c10d", *self.FLAGS, *flags, *map(str, words)]
        return self.popen(self.hosts.command(host, *command) if self.HOSTS else command)

    def popen(self, command):
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, cwd=self.folder, env=self.environment({"OUT": str(self.folder / "out"), **self.ENV}))
        self.addCleanup(process.communicate, timeout=RECOVERY_S)
        self.addCleanup(process.kill)
        return process

    def rounds(self):
        """The complete rounds so far: {port of the workers' store: number of ranks}."""
        ranks = collections.defaultdict(set)
        for file in (self.folder / "out").glob("*-*-*"):
            port, rank, world = map(int, file.name.split("-"))
            ranks[port, world].add(rank)
        return {port: world for (port, world), came in ranks.items() if len(came) == world}

    def wait_for_round(self, world, known):
        """A new complete round of `world` ranks; adds it to `known` and tells how long it took."""
        start = time.monotonic()
        while True:
            new = {port: size for port, size in self.rounds().items() if port not in known}
            if world in new.values():
                known.update(new)
                return time.monotonic() - start
            self.assertLess(time.monotonic() - start, RECOVERY_S,
                            f"no round of {world}: {self.rounds()}, known {known}")
            time.sleep(0.02)

    def finish(self, agents):
        (self.folder / "out/done").touch()
        for agent in agents:
            out, _ = agent.communicate(timeout=RECOVERY_S)
            self.assertEqual(0, agent.returncode, out)
        self.assert_nothing_left()
