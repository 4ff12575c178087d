"""Nodes that come and go: four hosts in network namespaces, each lost in turn, and a cut network."""

import collections
import signal
import subprocess
import time
import unittest

from end_to_end.hosts import Hosts, skip_unless_available
from end_to_end.support import SCALETRAIN, RunTestCase, records
from launcher.launch_support import LaunchTestCase

RECOVERY_S = 60
PORT = 29471

# Tells which round it is part of, and stays until the test is done.
WORKER = ("echo $MASTER_PORT $RANK >>$OUT.new.$$; mv $OUT.new.$$ $OUT/$MASTER_PORT-$RANK-$WORLD_SIZE;"
          "while [ ! -e $OUT/done ]; do sleep 0.05; done")


class AgentsTestCase(LaunchTestCase):
    NNODES = "2:4"
    FLAGS = ["--heartbeat-timeout", "3s", "--last-call", "1s", "--join-timeout", "60s",
             "--grace", "2s"]

    def setUp(self):
        super().setUp()
        (self.folder / "out").mkdir()
        self.hosts = Hosts(self, 4)
        self.endpoints = ",".join(f"{address}:{PORT}" for address in self.hosts.addresses)

    def agent(self, host, *words, flags=()):
        words = words or ("--", "sh", "-c", WORKER)
        process = subprocess.Popen(
            self.hosts.command(host, SCALETRAIN, "launch", "--nnodes", self.NNODES,
                               "--rdzv-endpoint", self.endpoints, "--rdzv-backend", "c10d",
                               *self.FLAGS, *flags, *words),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            cwd=self.folder, env=self.environment({"OUT": str(self.folder / "out")}))
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


@skip_unless_available()
class Agents(AgentsTestCase):
    def test_each_agent_in_turn_is_killed_and_comes_again(self):
        agents = [self.agent(host) for host in range(4)]
        known = {}
        self.wait_for_round(4, known)
        for victim in range(4):
            agents[victim].kill()
            took = self.wait_for_round(3, known)
            print(f"agent {victim} killed: 3 go on after {took:.1f} s", flush=True)
            agents[victim] = self.agent(victim)
            took = self.wait_for_round(4, known)
            print(f"agent {victim} again: 4 go on after {took:.1f} s", flush=True)
        self.finish(agents)

    def test_only_the_larger_part_of_a_cut_network_goes_on(self):
        for cut in (3, 0):  # a node, then the one with the store
            with self.subTest(cut=cut):
                agents = [self.agent(host) for host in range(4)]
                known = {}
                self.wait_for_round(4, known)
                self.hosts.cut(cut)
                took = self.wait_for_round(3, known)
                print(f"host {cut} cut off: 3 go on after {took:.1f} s", flush=True)
                lone = agents.pop(cut)
                if cut == 0:  # it had the store, and is too small a part
                    out, _ = lone.communicate(timeout=RECOVERY_S)
                    self.assertIn("too few of the nodes are left to go on", out)
                    self.assertEqual(1, lone.returncode)
                    self.hosts.cut(cut, connected=True)
                    self.finish(agents)
                else:  # it looks for the others until the network is there again
                    self.hosts.cut(cut, connected=True)
                    took = self.wait_for_round(4, known)
                    print(f"host {cut} connected: 4 go on after {took:.1f} s", flush=True)
                    self.finish([*agents, lone])
                self.assertEqual({3, 4}, set(known.values()))
                for file in (self.folder / "out").iterdir():
                    file.unlink()

    def test_an_agent_that_is_stopped_leaves_and_the_others_go_on(self):
        agents = [self.agent(host) for host in range(3)]
        known = {}
        self.wait_for_round(3, known)
        agents[1].send_signal(signal.SIGTERM)
        self.wait_for_round(2, known)
        self.assertEqual(1, agents.pop(1).wait(RECOVERY_S))
        self.finish(agents)

    def test_a_stranger_is_refused(self):
        agents = [self.agent(host) for host in range(2)]
        self.wait_for_round(2, {})
        stranger = self.agent(2, flags=["--rdzv-id", "another"])
        out, _ = stranger.communicate(timeout=RECOVERY_S)
        self.assertEqual(2, stranger.returncode)
        self.assertIn("the store there is that of job \"none\"", out)
        self.finish(agents)


@skip_unless_available()
class Recipes(AgentsTestCase, RunTestCase):
    def test_a_run_survives_its_leader_and_another_number_of_ranks(self):
        steps = 120
        changes = dict(steps=steps, batch={"global": 48, "per_device": 8},
                       checkpoint={"every": {"steps": 10}})
        alone = self.recipe("alone", **changes)
        self.run_launcher("launch", alone)
        shared = self.recipe("shared", **changes)
        agents = [self.agent(host, "--resume", "auto", shared) for host in range(3)]
        run = self.folder / "shared"
        self.wait_for(lambda: list((run / "checkpoints").glob("step-*/manifest.json")),
                      "a checkpoint")
        agents.pop(0).kill()
        for agent in agents:
            out, _ = agent.communicate(timeout=300)
            self.assertEqual(0, agent.returncode, out)
        ours, theirs = (records(self.folder / name, "train") for name in ("shared", "alone"))
        self.assertEqual([record["step"] for record in theirs], [record["step"] for record in ours])
        self.assertEqual(theirs[-1]["order_digest"], ours[-1]["order_digest"])
        self.assertGreater(ours[-1]["attempt"], 0)
        for mine, other in zip(ours, theirs):  # sums have another order
            self.assertLess(abs(mine["loss"] - other["loss"]), 1e-3 * other["loss"], mine["step"])

    def test_an_open_global_batch_is_refused(self):
        agent = self.agent(0, self.recipe())
        out, _ = agent.communicate(timeout=RECOVERY_S)
        self.assertEqual(2, agent.returncode)
        self.assertIn("--nnodes: nodes may come and go, and the global batch would change", out)


if __name__ == "__main__":
    unittest.main()
