"""Two nodes with a static address: two network namespaces with addresses of their own stand for the
hosts."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

from end_to_end.hosts import Hosts, skip_unless_available
from end_to_end.support import (SCALETRAIN, TIMEOUT_S, RunTestCase, pids_with, records,
                                wait_until)

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


@skip_unless_available()
class TwoHosts(RunTestCase):
    V6 = False

    def setUp(self):
        super().setUp()
        self.hosts = Hosts(self, 2, v6=self.V6)

    def start_node(self, node, *arguments):
        """`scaletrain launch` for two nodes on host number `node`."""
        marker = f"{self.id()}-{os.getpid()}-{node}"
        process = subprocess.Popen(
            self.hosts.command(node, SCALETRAIN, "launch", "--nnodes", "2", "--node-rank", node,
                               "--nproc", "1", "--master-addr", self.hosts.addresses[0],
                               "--master-port", PORT, "--grace", "5s", *arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            cwd=self.folder,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "wire", "SCALETRAIN_TEST_MARKER": marker})
        process.marker = f"SCALETRAIN_TEST_MARKER={marker}"
        self.addCleanup(self._end, process)
        return process

    def finish(self, nodes):
        return [(node.communicate(timeout=TIMEOUT_S), node.returncode) for node in nodes]

    def test_a_recipe_trains_as_on_one_host(self):
        # Alone on its host a rank would have more threads, and sum in another order on some CPUs.
        alone = self.recipe("alone", steps=8, threads=1)
        self.run_scaletrain("launch", "--nproc", 2, alone)
        apart = self.recipe("apart", steps=8, threads=1)
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
        worker, = [pid for pid in pids_with(nodes[1].marker)
                   if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "scaletrain-worker"]
        os.kill(worker, signal.SIGKILL)
        for (_, err), status in self.finish(nodes):
            self.assertEqual(137, status, err)
            self.assertRegex(err, r"rank 1 failed first: killed by SIGKILL \(node 1, host \S+, local rank 0")
        failure = json.loads((self.folder / "recipe/failure.json").read_text())
        self.assertEqual((1, 1, "SIGKILL"), tuple(failure[key] for key in ("node", "rank", "signal")))
        self.assertEqual([], [pid for node in nodes for pid in pids_with(node.marker)])

    def test_a_hang_on_one_host_is_the_verdict_on_both(self):
        recipe = self.recipe()
        with unittest.mock.patch.dict(os.environ, SCALETRAIN_FAULT="spin@7,1"):
            nodes = [self.start_node(node, "--hang-timeout", "2s", recipe) for node in range(2)]
        for (_, err), status in self.finish(nodes):
            self.assertEqual(75, status, err)
            self.assertRegex(err, r"(?m)^rank 1 on host \S+ never arrived at collective \d+ of step 7 ")
        failure = json.loads((self.folder / "recipe/failure.json").read_text())
        self.assertEqual((1, 1, 75), tuple(failure[key] for key in ("node", "rank", "exit_code")))


class TwoHostsOfIPv6Only(TwoHosts):
    V6 = True


if __name__ == "__main__":
    unittest.main()
