"""Two nodes with a static address: two network namespaces with addresses of their own stand for the
hosts."""

import json
import os
import shutil
import signal
import sys
import textwrap
import time
import unittest
import unittest.mock

from end_to_end.hosts import TwoHostsTestCase, skip_unless_available
from end_to_end.support import (DIGITS, LONG, TIMEOUT_S, RunTestCase, pids_with, records,
                                wait_until)
from free_port import free_port

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
class TwoHosts(TwoHostsTestCase):
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

    def test_an_address_that_is_loopback_on_one_host_is_refused_before_workers_start(self):
        recipe = self.recipe()
        nodes = [self.start_node(node, "--master-addr", address, recipe)
                 for node, address in enumerate(("127.0.0.2", self.hosts.addresses[0]))]
        for (_, err), status in self.finish(nodes):
            self.assertEqual(2, status, err)
            self.assertIn("MASTER_ADDR: \"127.0.0.2\" is a loopback address on node 0", err)
        self.assertEqual([], list((self.folder / "recipe/logs").glob("attempt_*")))


class TwoHostsOfIPv6Only(TwoHosts):
    V6 = True


@skip_unless_available()
class MoreOfTwoHosts(TwoHostsTestCase):
    def test_a_launcher_with_another_recipe_is_refused_with_the_key(self):
        recipe = self.recipe()
        nodes = [self.start_node(0, recipe), self.start_node(1, recipe, "--set", "optimizer.lr=0.5")]
        _, err = nodes[1].communicate(timeout=TIMEOUT_S)
        self.assertEqual(2, nodes[1].returncode, err)
        self.assertIn("refuses this node: its recipe is not the job's: optimizer.lr is 0.5, "
                      "not 0.05\n", err)
        for pid in pids_with(nodes[0].marker):
            os.kill(pid, signal.SIGTERM)
        self.finish(nodes[:1])
        self.assertEqual(75, nodes[0].returncode)

    def test_hosts_may_have_the_same_shards_in_other_places(self):
        (self.folder / "copy").mkdir()
        for file in [*DIGITS.glob("*.tar"), DIGITS / "classes.json"]:
            shutil.copy(file, self.folder / "copy")
        recipe = self.recipe(steps=2)
        text = recipe.read_text().replace(str(DIGITS), str(self.folder / "copy"))
        (self.folder / "there").mkdir()
        there = self.folder / "there/recipe.json"
        there.write_text(text)
        for (_, err), status in self.finish([self.start_node(0, recipe), self.start_node(1, there)]):
            self.assertEqual(0, status, err)

    def test_a_foreign_program_meets(self):
        script = self.folder / "ddp.py"
        script.write_text(textwrap.dedent(DDP))
        results = self.finish(
            [self.start_node(node, "--", sys.executable, script) for node in range(2)])
        for node, ((out, err), status) in enumerate(results):
            self.assertEqual(0, status, err)
            self.assertIn(f"rank {node} of node {node}: 3.0", out)

    def test_a_save_longer_than_the_hang_timeout_is_no_hang_while_it_beats(self):
        recipe = self.recipe(steps=6, log={"every": {"steps": 1}})
        slow = self.folder / "slow"
        nodes = [self.start_node(node, "--hang-timeout", "3s", recipe, env=self.faulty_libc())
                 for node in range(2)]
        wait_until(lambda: (self.folder / "recipe/metrics.jsonl").exists(), "the first step")
        slow.touch()  # from now on each sync takes 2 s, and another rank waits for all of them
        wait_until(lambda: list(self.folder.glob("recipe/checkpoints/*.tmp.*")), "the save")
        start = time.monotonic()
        for (out, err), status in self.finish(nodes):
            self.assertEqual(0, status, f"{out}\n{err}")
        self.assertGreater(time.monotonic() - start, 8)  # longer than a silent rank has

    def test_a_rank_does_not_wait_in_a_collective_for_a_host_that_is_gone(self):
        # Nothing closes the connections to it. Without the launcher's word the rank would wait for
        # the group's time, deaf to SIGTERM, and be killed when the grace is over.
        recipe = self.recipe(steps=100000, log={"every": {"steps": 1}})
        nodes = [self.start_node(node, "--heartbeat-timeout", "3s", recipe, grace="90s")
                 for node in range(2)]
        metrics = self.folder / "recipe/metrics.jsonl"
        wait_until(lambda: metrics.exists() and records(metrics.parent, "train"), "a step")
        self.hosts.cut(1)
        start = time.monotonic()
        ((_, err), status), = self.finish(nodes[:1])
        self.assertEqual(75, status, err)
        self.assertLess(time.monotonic() - start, 60)
        self.assertIn("(the launcher reports that a rank is gone)",
                      (self.folder / "recipe/logs/attempt_0/0/stderr.log").read_text())

    def test_a_hang_on_one_host_is_the_verdict_on_both(self):
        recipe = self.recipe()
        with unittest.mock.patch.dict(os.environ, SCALETRAIN_FAULT="spin@7,1"):
            nodes = [self.start_node(node, "--hang-timeout", "2s", recipe) for node in range(2)]
        for (_, err), status in self.finish(nodes):
            self.assertEqual(75, status, err)
            self.assertRegex(err, r"(?m)^rank 1 on host \S+ never arrived at collective \d+ of step 7 ")
        failure = json.loads((self.folder / "recipe/failure.json").read_text())
        self.assertEqual((1, 1, 75), tuple(failure[key] for key in ("node", "rank", "exit_code")))


@unittest.skipUnless(LONG, "over IPv6 too: the long form")
class MoreOfTwoHostsOfIPv6Only(MoreOfTwoHosts):
    V6 = True


class TwoLaunchersOfOneHost(RunTestCase):
    def start_node(self, node, port, *arguments):
        return self.start("launch", "--nnodes", 2, "--node-rank", node, "--master-addr", "127.0.0.1",
                          "--master-port", port, *arguments)

    def test_two_launchers_of_one_host_use_the_loopback_address_and_print_the_resume_command(self):
        self.run_scaletrain("launch", "--nproc", 2, self.recipe("alone", steps=8, threads=1))
        apart = self.recipe("apart", steps=8, threads=1)
        port = free_port()
        for node in [self.start_node(node, port, apart) for node in range(2)]:
            out, err = node.communicate(timeout=TIMEOUT_S)
            self.assertEqual(0, node.returncode, f"{out}\n{err}")
        losses = [[record["loss"] for record in records(self.folder / name, "train")]
                  for name in ("alone", "apart")]
        self.assertEqual(losses[0], losses[1])

        recipe = self.recipe(steps=100000)
        nodes = [self.start_node(node, port, recipe) for node in range(2)]
        metrics = self.folder / "recipe/metrics.jsonl"
        wait_until(lambda: metrics.exists() and records(metrics.parent, "train"), "a step")
        nodes[1].send_signal(signal.SIGTERM)
        for number, node in enumerate(nodes):
            _, err = node.communicate(timeout=TIMEOUT_S)
            self.assertEqual(75, node.returncode, err)
            if number == 1:
                self.assertIn(f"continue with: scaletrain resume {metrics.parent} --nnodes 2 --nproc 1 "
                              f"--node-rank 1 --master-addr 127.0.0.1 --master-port {port}\n", err)
            else:
                self.assertIn(f"scaletrain resume {metrics.parent} --nnodes 2 --nproc 1 --node-rank 0",
                              err)


if __name__ == "__main__":
    unittest.main()
