"""The launcher that leads is killed or stopped while another one is on its host, and the others go on:
with a program and with a recipe, on one host and on two."""

import re
import signal
import unittest

from end_to_end.agents_support import AgentsTestCase
from end_to_end.hosts import skip_unless_available
from end_to_end.support import LONG, RunTestCase, records

ROUNDS = 50 if LONG else 2
WITHIN_S = 15


class LostLeaderTestCase(AgentsTestCase, RunTestCase):
    NNODES = "1:3"
    FLAGS = ["--last-call", "30s"]  # nobody waits for it who knows that all are here
    HOSTS = 0
    PLACES = (0, 0, 0)  # the host of each agent

    def setUp(self):
        super().setUp()
        self.endpoints = self.endpoints.split(",")[0]

    def start_agents(self, *words):
        """Three agents. The first one leads, but on a busy machine another of its host may."""
        agents = [self.agent(self.PLACES[0], *words)]
        self.wait_for(lambda: self.leads(agents[0]), "a leader")
        return agents + [self.agent(place, *words) for place in self.PLACES[1:]]

    def leads(self, agent):
        """Whether the process serves a store: a child of it does."""
        with open(f"/proc/{agent.pid}/task/{agent.pid}/children") as children:
            return any(self.serves_store(child) for child in children.read().split())

    def serves_store(self, process):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as words:
                return b"store" in words.read().split(b"\0")
        except OSError:  # it has ended
            return False

    def leader(self, agents):
        leader, = filter(self.leads, agents)
        return leader

    def kill_leader(self, agents, leader=None):
        leader = leader or self.leader(agents)
        agents.remove(leader)
        leader.kill()
        leader.wait()

    def check_console(self, out):
        """What happened and what is awaited, once; then how it goes on."""
        self.assertEqual(1, out.count("the node with the store was lost"), out)
        self.assertEqual(1, out.count("more than half of 3 nodes meet again, or give up after"), out)
        self.assertRegex(out, r"the job continues with 2 nodes; this is node [01]\n")


class OneHost(LostLeaderTestCase):
    def test_the_others_go_on(self):
        for number in range(ROUNDS):
            with self.subTest(number=number):
                agents = self.start_agents()
                known = self.rounds()
                self.wait_for_round(3, known)
                self.kill_leader(agents)
                self.assertLess(self.wait_for_round(2, known), WITHIN_S)
                (self.folder / "out/done").touch()
                for agent in agents:
                    out, _ = agent.communicate(timeout=WITHIN_S)
                    self.assertEqual(0, agent.returncode, out)
                    self.check_console(out)
                (self.folder / "out/done").unlink()

    def test_leaders_that_are_stopped_hand_over_until_one_is_left(self):
        agents = self.start_agents()
        known = {}
        self.wait_for_round(3, known)
        for left in (2, 1):
            leader = self.leader(agents)
            agents.remove(leader)
            leader.send_signal(signal.SIGTERM)
            self.assertLess(self.wait_for_round(left, known), WITHIN_S)
            out, _ = leader.communicate(timeout=WITHIN_S)
            self.assertEqual(1, leader.returncode, out)
        (self.folder / "out/done").touch()
        out, _ = agents[0].communicate(timeout=WITHIN_S)
        self.assertEqual(0, agents[0].returncode, out)
        self.assertEqual(2, out.count("the node with the store leaves: "), out)
        self.assertIn("stopped: node 0: its launcher received SIGTERM\n  the other nodes continue without it", out)
        self.assertNotIn("was lost", out)

    def test_a_leader_that_stands_still_is_left(self):
        self.FLAGS = ["--heartbeat-timeout", "3s"]
        agents = self.start_agents()
        known = {}
        self.wait_for_round(3, known)
        stopped = self.leader(agents)
        stopped.send_signal(signal.SIGSTOP)
        self.assertLess(self.wait_for_round(2, known), WITHIN_S)
        self.kill_leader(agents, stopped)
        self.finish(agents)


@skip_unless_available()
class TwoHosts(OneHost):
    HOSTS = 2
    PLACES = (0, 0, 1)


class MoreOfOneHost(LostLeaderTestCase):
    def test_a_run_of_a_recipe_goes_on(self):
        recipe = self.recipe(steps=60, batch={"global": 48, "per_device": 8}, threads=1,
                             checkpoint={"every": {"steps": 5}})
        self.ENV = {"SCALETRAIN_FAULT": "slows@1"}  # 50 ms a step
        agents = self.start_agents("--resume", "auto", recipe)
        run = self.folder / "recipe"
        self.wait_for(lambda: list(run.glob("checkpoints/step-*/manifest.json")), "a checkpoint")
        self.kill_leader(agents)
        for agent in agents:
            out, _ = agent.communicate(timeout=120)
            self.assertEqual(0, agent.returncode, out)
            self.check_console(out)
        self.assertEqual(list(range(1, 61)), [record["step"] for record in records(run, "train")])
        self.assert_nothing_left()

    def test_the_other_of_two_nodes_continues_when_the_leader_is_stopped(self):
        self.NNODES, self.PLACES = "1:2", self.PLACES[-2:]
        recipe = self.recipe(steps=60, batch={"global": 32, "per_device": 8}, threads=1,
                             checkpoint={"every": {"steps": 5}})
        self.ENV = {"SCALETRAIN_FAULT": "slows@1"}  # 50 ms a step
        agents = self.start_agents("--resume", "auto", recipe)
        run = self.folder / "recipe"
        self.wait_for(lambda: list(run.glob("checkpoints/step-*/manifest.json")), "a checkpoint")
        leader = self.leader(agents)
        agents.remove(leader)
        leader.send_signal(signal.SIGTERM)
        for agent, status in ((leader, 75), (agents[0], 0)):
            out, _ = agent.communicate(timeout=120)
            self.assertEqual(status, agent.returncode, out)
        self.assertEqual(list(range(1, 61)), [record["step"] for record in records(run, "train")])
        self.assert_nothing_left()

    def test_a_run_that_is_done_is_not_started_again_when_a_launcher_falls_silent(self):
        self.NNODES, self.PLACES = "1:2", self.PLACES[-2:]
        self.FLAGS = ["--heartbeat-timeout", "12s"]  # longer than the rest of the run
        self.ENV = {"SCALETRAIN_FAULT": "slows@1"}
        for leads in (True, False):
            with self.subTest(leads=leads):
                name = f"done-{leads}"
                recipe = self.recipe(name, steps=40, batch={"global": 32, "per_device": 8}, threads=1,
                                     checkpoint={"every": {"steps": 5}})
                agents = self.start_agents("--resume", "auto", recipe)
                run = self.folder / name
                self.wait_for(lambda: list(run.glob("checkpoints/step-*/manifest.json")), "a checkpoint")
                silent, = (agent for agent in agents if self.leads(agent) == leads)
                agents.remove(silent)
                silent.send_signal(signal.SIGSTOP)
                out, _ = agents[0].communicate(timeout=120)
                silent.kill()
                silent.wait()
                self.assertEqual(0, agents[0].returncode, out)
                self.assertRegex(out, "warning: .* was lost")
                self.assertIn("the run was done", out)
                self.assertTrue((run / "finished.json").exists())
                self.assertEqual({0}, {record["attempt"] for record in records(run, "train")})

    def test_a_launcher_that_is_started_again_at_once_joins_the_others(self):
        # What comes back leads alone until it hears where the others are: on a busy machine that
        # takes a while, and its last call must be longer.
        self.FLAGS = ["--last-call", "15s"]
        agents = self.start_agents()
        known = {}
        self.wait_for_round(3, known)
        self.kill_leader(agents)
        agents.append(self.agent(self.PLACES[0]))
        self.wait_for_round(3, known)  # with one of 2 before, where it came too late for the first
        self.finish(agents)

    def test_a_node_for_which_the_batch_does_not_divide_is_told(self):
        recipe = self.recipe(steps=20, batch={"global": 32, "per_device": 16})
        self.ENV = {"SCALETRAIN_FAULT": "slows@1"}
        self.FLAGS = ["--last-call", "1s"]
        told = []
        for agent in self.start_agents("--resume", "auto", recipe):
            out, _ = agent.communicate(timeout=120)
            self.assertEqual(0, agent.returncode, out)
            told += re.findall("the job runs on .*", out)
        self.assertEqual(["the job runs on 2 nodes, without this one: the batch does not divide "
                          "among the ranks of 3 nodes, but of 1, 2"], told)


@unittest.skipUnless(LONG, "on two hosts too: the long form")
@skip_unless_available()
class MoreOfTwoHosts(MoreOfOneHost):
    HOSTS = 2
    PLACES = (0, 0, 1)


if __name__ == "__main__":
    unittest.main()
