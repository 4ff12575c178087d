"""Hosts for a test: network namespaces of its own on one bridge, each with its own address."""

import os
import shutil
import subprocess
import unittest

from end_to_end.support import SCALETRAIN, TIMEOUT_S, RunTestCase

PORT = "29533"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def available():
    return os.geteuid() == 0 and shutil.which("ip") is not None


class Hosts:
    """`count` hosts; addresses[i] is what host i is called by the others."""

    def __init__(self, test, count, v6=False):
        self.names = [f"st{os.getpid()}-{test._testMethodName[-12:]}-{i}" for i in range(count)]
        self.addresses = [f"fd99::{i + 1}" if v6 else f"10.99.78.{i + 1}" for i in range(count)]
        switch = self.names[0] + "-sw"
        for name in (switch, *self.names):
            ip("netns", "add", name)
            test.addCleanup(ip, "netns", "delete", name)
        ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", switch, "link", "set", "bridge", "up")
        for i, (name, address) in enumerate(zip(self.names, self.addresses)):
            ip("-n", name, "link", "add", "wire", "type", "veth", "peer", "name", f"port{i}",
               "netns", switch)
            ip("-n", switch, "link", "set", f"port{i}", "master", "bridge", "up")
            prefix = ["64", "nodad"] if v6 else ["24"]
            ip("-n", name, "address", "add", f"{address}/{prefix[0]}", "dev", "wire", *prefix[1:])
            ip("-n", name, "link", "set", "wire", "up")
            ip("-n", name, "link", "set", "lo", "up")
        self.switch = switch

    def cut(self, host, connected=False):
        """Cuts host `host` off the others, or connects it again."""
        ip("-n", self.switch, "link", "set", f"port{host}", "up" if connected else "down")

    def split(self, hosts):
        """Cuts the network in two: `hosts` can reach each other, and so can the rest."""
        ip("-n", self.switch, "link", "add", "bridge2", "type", "bridge")
        ip("-n", self.switch, "link", "set", "bridge2", "up")
        for host in hosts:
            ip("-n", self.switch, "link", "set", f"port{host}", "master", "bridge2")

    def command(self, host, *words):
        return ["ip", "netns", "exec", self.names[host], *map(str, words)]


def skip_unless_available():
    return unittest.skipUnless(available(), "needs root and iproute2 for hosts of its own")


class TwoHostsTestCase(RunTestCase):
    """Launchers of one job on two hosts."""

    V6 = False

    def setUp(self):
        super().setUp()
        self.hosts = Hosts(self, 2, v6=self.V6)

    def start_node(self, node, *arguments, grace="5s", env=None):
        """`scaletrain launch` for two nodes on host number `node`."""
        marker = f"{self.id()}-{os.getpid()}-{node}"
        process = subprocess.Popen(
            self.hosts.command(node, SCALETRAIN, "launch", "--nnodes", "2", "--node-rank", node,
                               "--nproc", "1", "--master-addr", self.hosts.addresses[0],
                               "--master-port", PORT, "--grace", grace, *arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "wire", "SCALETRAIN_TEST_MARKER": marker,
                 **(env or {})})
        process.marker = f"SCALETRAIN_TEST_MARKER={marker}"
        self.addCleanup(self._end, process)
        return process

    def finish(self, nodes):
        return [(node.communicate(timeout=TIMEOUT_S), node.returncode) for node in nodes]
