"""Replicas that outlive each other on several nodes: one, or a whole node, is lost, and the others go
on."""

import os
import signal
import unittest

from end_to_end import support
from end_to_end.hosts import TwoHostsTestCase, skip_unless_available
from end_to_end.replicas_support import (BATCH, DONE_WITH_FEWER, async_sync, diloco, last_step,
                                         lost_samples)
from free_port import free_port


class LostOnNodes(support.RunTestCase):
    """All nodes are this machine."""

    def nodes(self, count, nproc, *arguments, fault=""):
        port, env = free_port(), {"SCALETRAIN_FAULT": fault} if fault else None
        return [self.start("launch", "--nnodes", count, "--node-rank", node, "--nproc", nproc,
                           "--master-addr", "127.0.0.1", "--master-port", port, *arguments, env=env)
                for node in range(count)]

    def finish(self, nodes, expect):
        """Their standard errors."""
        texts = []
        for node in nodes:
            _, err = node.communicate(timeout=support.TIMEOUT_S)
            self.assertEqual(expect, node.returncode, err)
            texts.append(err)
        for node in nodes:
            self.assert_nothing_left(node)
        return texts

    def test_every_node_names_the_replica_that_is_lost_and_goes_on(self):
        # Replicas by rank, and of two stages each, whose second ones are on node 1.
        cases = {"diloco": (diloco(), {}, 20, 4, "rank 3 is lost, the others go on"),
                 "async": (async_sync(), {}, 28, 4, "rank 3 is lost, the others go on"),
                 "pipeline": (diloco(), {"parallel": {"pipeline": 2},
                                         "batch": {"per_device": 16, "accumulate": 2}}, 20, 2,
                              "rank 3 is lost, and replica 1 with it (ranks 1, 3), the others go on")}
        for name, (sync, more, kept, replicas, words) in cases.items():
            with self.subTest(name):
                path = self.recipe(name, steps=60, sync=sync, **more)
                for err in self.finish(self.nodes(2, 2, path, fault="kill@30,3"), DONE_WITH_FEWER):
                    self.assertIn(f"{words}: killed by SIGKILL (node 1, host ", err)
                    self.assertIn(f"the job is done with {replicas - 1} of {replicas} replicas; "
                                  "lost: rank 3 (killed by SIGKILL, step 30)", err)
                state = support.state(self.folder / name)
                self.assertEqual(60, state["step"])
                if not more:
                    self.assertEqual((60 - kept) * BATCH, lost_samples(state, 3, replicas))
                    self.assertEqual(0, lost_samples(state, 1, replicas))

    def train_until(self, step, nodes, **recipe):
        path, run = self.recipe("run", steps=100000, sync=diloco(), **recipe), self.folder / "run"
        started = nodes(path)
        support.wait_until(lambda: last_step(run) >= step, f"step {step}")
        return started, run

    def test_a_node_whose_launcher_is_killed_ends_nothing_but_its_replicas(self):
        flags = ["--heartbeat-timeout", "2s"]
        nodes, run = self.train_until(20, lambda path: self.nodes(3, 1, *flags, path))
        nodes[1].kill()
        nodes[1].communicate(timeout=support.TIMEOUT_S)
        support.wait_until(
            lambda: support.records(run, "lost_replica") and "lose a replica" in self.journal(run),
            "the loss of node 1")
        seen = last_step(run)
        support.wait_until(lambda: last_step(run) >= seen + 20, "steps of the others")
        nodes[2].send_signal(signal.SIGTERM)  # one stops all
        for err in self.finish([nodes[0], nodes[2]], 75):
            self.assertRegex(err, r"node 1, host \S+ is lost, and replica 1 with it \(rank 1\), the "
                                  "others go on: its launcher has sent no heartbeat for 2 s")
            self.assertIn("lost before: node 1 (lost)", err)
        state = support.state(run)
        self.assertGreater(lost_samples(state, 1, 3), 0)
        self.assertEqual(0, lost_samples(state, 2, 3))

    def journal(self, run):
        return "".join(file.read_text() for file in (run / "logs/agents").glob("*.jsonl"))

    def test_a_stop_on_one_node_exchanges_and_saves_at_one_step(self):
        nodes, run = self.train_until(20, lambda path: self.nodes(2, 1, path))
        nodes[1].send_signal(signal.SIGTERM)
        self.finish(nodes, 75)
        state = support.state(run)
        self.assertEqual([], state["lost_positions"])
        steps = state["step"] + 20
        self.run_scaletrain("resume", run, "--nproc", 2, "--set", f"steps={steps}", "--allow",
                            "steps")
        self.assertEqual(steps, support.state(run)["step"])

    def test_rank_0s_replica_is_the_exception_on_any_node(self):
        # Ranks 0 and 2 are its stages.
        path = self.recipe("run", steps=60, sync=diloco(), parallel={"pipeline": 2},
                           batch={"per_device": 16, "accumulate": 2})
        for err in self.finish(self.nodes(2, 2, path, fault="kill@15,2"), 137):
            self.assertIn("rank 2 failed first: killed by SIGKILL (node 1", err)
            self.assertNotIn("is lost, ", err)


@skip_unless_available()
class LostHost(TwoHostsTestCase):
    """A host that is cut off: nothing closes its connections."""

    def test_the_others_go_on_without_a_host_that_is_gone(self):
        recipe = self.recipe(steps=100000, sync=diloco())
        nodes = [self.start_node(node, "--heartbeat-timeout", "3s", recipe) for node in range(2)]
        run = self.folder / "recipe"
        support.wait_until(lambda: last_step(run) >= 20, "step 20")
        self.hosts.cut(1)
        seen = last_step(run)
        support.wait_until(lambda: last_step(run) >= seen + 40, "steps of rank 0 alone")
        nodes[0].send_signal(signal.SIGTERM)
        (_, gone), (_, err) = nodes[1].communicate(), nodes[0].communicate()
        self.assertEqual((75, 75), (nodes[0].returncode, nodes[1].returncode), err + gone)
        self.assertIn("node 1 (lost)", err)
        self.assertGreater(lost_samples(support.state(run), 1, 2), 0)
        self.assertEqual([], [pid for node in nodes for pid in support.pids_with(node.marker)])


if __name__ == "__main__":
    unittest.main()
