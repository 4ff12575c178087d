"""Two nodes with a static address: two network namespaces with addresses of their own stand for the
hosts."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import unittest

from end_to_end.support import (SCALETRAIN, TIMEOUT_S, RunTestCase, pids_with, records,
                                wait_until)

ADDRESSES = ["10.99.77.1", "10.99.77.2"]
PORT = "29533"

DDP = """
    import os, sys, torch, torch.distributed as dist
    dist.init_process_group("gloo")
    value = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(value)
    sys.stdout.write(f"rank {os.environ['RANK']} of node {os.environ['GROUP_RANK']}: {value.item()}\\n")
    sys.stdout.flush()
    dist.destroy_process_group()
    os._exit(0)
"""


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and iproute2 for hosts")
class TwoHosts(RunTestCase):
    def setUp(self):
        super().setUp()
        self.hosts = [f"st{os.getpid()}-{node}" for node in range(2)]
        for host in self.hosts:
            ip("netns", "add", host)
            self.addCleanup(ip, "netns", "delete", host)
        first, second = self.hosts
        ip("-n", first, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", second)
        for host, address in zip(self.hosts, ADDRESSES):
            ip("-n", host, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", host, "link", "set", "wire", "up")
            ip("-n", host, "link", "set", "lo", "up")

    def start_node(self, node, *arguments):
        """`scaletrain launch` for two nodes on host number `node`."""
        marker = f"{self.id()}-{os.getpid()}"
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.hosts[node], SCALETRAIN, "launch", "--nnodes", "2",
             "--node-rank", str(node), "--nproc", "1", "--master-addr", ADDRESSES[0],
             "--master-port", PORT, "--grace", "5s", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "wire", "SCALETRAIN_TEST_MARKER": marker}, cwd=self.folder)
        process.marker = f"SCALETRAIN_TEST_MARKER={marker}"
        self.addCleanup(self._end, process)
        return process

    def finish(self, nodes):
        return [(node.communicate(timeout=TIMEOUT_S), node.returncode) for node in nodes]

    def test_a_recipe_trains_as_on_one_host(self):
        alone = self.recipe("alone", steps=8)
        self.run_scaletrain("launch", "--nproc", 2, alone)
        apart = self.recipe("apart", steps=8)
        for (out, err), status in self.finish([self.start_node(node, apart) for node in range(2)]):
            self.assertEqual(0, status, f"{out}\n{err}")
        losses = [[record["loss"] for record in records(self.folder / name, "train")]
                  for name in ("alone", "apart")]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(8, len(losses[0]))

    def test_a_foreign_program_meets(self):
        script = self.folder / "ddp.py"
        script.write_text(textwrap.dedent(DDP))
        results = self.finish(
            [self.start_node(node, "--", sys.executable, script) for node in range(2)])
        for node, ((out, err), status) in enumerate(results):
            self.assertEqual(0, status, err)
            self.assertIn(f"rank {node} of node {node}: 3.0", out)

    def test_a_rank_that_dies_on_one_host_stops_the_other(self):
        recipe = self.recipe(steps=100000, log={"every": {"steps": 1}})
        nodes = [self.start_node(node, recipe) for node in range(2)]
        metrics = self.folder / "recipe/metrics.jsonl"
        wait_until(lambda: metrics.exists() and records(metrics.parent, "train"), "a step")
        workers = [pid for pid in pids_with(nodes[1].marker)
                   if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "scaletrain-worker"]
        os.kill(workers[-1], signal.SIGKILL)
        statuses = sorted(status for _, status in self.finish(nodes))
        self.assertEqual([75, 137], statuses)
        self.assertEqual([], pids_with(nodes[1].marker))


if __name__ == "__main__":
    unittest.main()
