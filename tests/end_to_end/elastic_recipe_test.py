"""A run on nodes that come and go, hosts in network namespaces: what is lost costs no step, and of a
network cut into halves one trains on."""

import json
import unittest

from end_to_end.agents_support import RECOVERY_S, AgentsTestCase
from end_to_end.hosts import skip_unless_available
from end_to_end.support import RunTestCase, records


class SharedRunTestCase(AgentsTestCase, RunTestCase):
    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "shared"

    def start_agents(self, count, **changes):
        """Agents on the hosts from 0 on, which share one run; the same run alone is done before."""
        # At this rate a last digit that differs stays one: at 0.05 it grew a hundredfold in 20 steps.
        changes = {"optimizer": {"name": "sgd", "lr": 0.01}, **changes}
        self.run_launcher("launch", self.recipe("alone", threads=1, **changes))
        shared = self.recipe("shared", threads=1, **changes)
        return [self.agent(host, "--resume", "auto", shared) for host in range(count)]

    def checkpoints(self):
        return sorted(file.parent.name for file in
                      self.run_folder.glob("checkpoints/step-*/manifest.json"))

    def check_run(self):
        """The shared run is the one that was alone, less the order of sums."""
        ours, theirs = (records(self.folder / name, "train") for name in ("shared", "alone"))
        self.assertEqual([record["step"] for record in theirs], [record["step"] for record in ours])
        self.assertEqual(theirs[-1]["order_digest"], ours[-1]["order_digest"])
        for mine, other in zip(ours, theirs):
            self.assertLess(abs(mine["loss"] - other["loss"]), 1e-3 * other["loss"], mine["step"])
        self.assertGreater(ours[-1]["attempt"], 0)


@skip_unless_available()
class Lost(SharedRunTestCase):
    def test_a_run_survives_its_leader_and_another_number_of_ranks(self):
        agents = self.start_agents(3, steps=120, batch={"global": 48, "per_device": 8},
                                   checkpoint={"every": {"steps": 10}})
        self.wait_for(self.checkpoints, "a checkpoint")
        agents.pop(0).kill()
        for agent in agents:
            out, _ = agent.communicate(timeout=300)
            self.assertEqual(0, agent.returncode, out)
        self.check_run()

    def test_an_open_global_batch_is_refused(self):
        agent = self.agent(0, self.recipe())
        out, _ = agent.communicate(timeout=RECOVERY_S)
        self.assertEqual(2, agent.returncode)
        self.assertIn("--nnodes: nodes may come and go, and the global batch would change", out)


@skip_unless_available()
class Tie(SharedRunTestCase):
    FLAGS = ["--heartbeat-timeout", "3s", "--last-call", "2s", "--join-timeout", "8s",
             "--grace", "1s"]
    ENV = {"SCALETRAIN_FAULT": "slows@1"}  # 50 ms a step

    def events(self, agent, name):
        """What the journal of an agent tells of one kind of event."""
        files = (self.run_folder / "logs/agents").glob(f"*-{agent.pid}-*.jsonl")
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return [line for line in lines if line["event"] == name]

    def ranks(self, agents):
        """The ranks of the agents in the round that runs."""
        running = 2  # docs/internals/launcher.md
        states = [(self.events(agent, "state") or [{"phase": 0}])[-1] for agent in agents]
        return [state["rank"] for state in states if state["phase"] == running]

    def test_the_half_with_the_store_goes_on_and_the_other_stops(self):
        agents = self.start_agents(4, steps=60, batch={"global": 32, "per_device": 8},
                                   checkpoint={"every": {"steps": 5}})
        self.wait_for(lambda: sorted(self.ranks(agents)) == [0, 1, 2, 3], "a round of four")
        before = self.checkpoints()
        self.wait_for(lambda: self.checkpoints() != before, "a checkpoint of theirs")
        ranks = self.ranks(agents)
        leader = agents[ranks.index(0)]
        losers = [agent for agent, rank in zip(agents, ranks) if rank in (1, 3)]
        verdicts = len(self.events(leader, "verdict"))
        self.hosts.split([agents.index(agent) for agent in losers])
        self.wait_for(lambda: len(self.events(leader, "verdict")) > verdicts,
                      "the leader to miss the others")
        newest = self.checkpoints()[-1]  # nobody trains until the next round

        outs = [agent.communicate(timeout=RECOVERY_S)[0] for agent in agents]
        for agent, out in zip(agents, outs):
            self.assertEqual(75 if agent in losers else 0, agent.returncode, out)
            if agent in losers:
                self.assertIn("more than half of the 4 nodes of the last round must come", out)
                self.assertEqual([], self.events(agent, "round"))
        self.assertIn(f"continuing from {self.run_folder}/checkpoints/{newest}",
                      outs[agents.index(leader)])
        self.assertEqual(2, self.events(leader, "round")[-1]["nodes"])
        lines = [json.loads(line) for line in
                 (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        attempts = [line["attempt"] for line in lines]
        self.assertEqual(sorted(attempts), attempts, "two jobs have written")
        first = next(line["step"] for line in lines if line["attempt"] == attempts[-1])
        self.assertEqual(int(newest.removeprefix("step-")) + 1, first)
        self.assert_nothing_left()
        self.check_run()


if __name__ == "__main__":
    unittest.main()
