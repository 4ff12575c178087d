"""Nodes that come and go: four hosts in network namespaces, each lost in turn, and a cut network."""

import signal
import unittest

from end_to_end.agents_support import RECOVERY_S, AgentsTestCase
from end_to_end.hosts import skip_unless_available


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
                    self.assertIn("too few nodes are left to continue", out)
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

    def test_a_first_host_that_comes_again_finds_the_others_where_they_are_now(self):
        self.endpoints = self.endpoints.split(",")[0]
        agents = [self.agent(host) for host in range(3)]
        known = {}
        self.wait_for_round(3, known)
        agents[0].kill()
        self.wait_for_round(2, known)
        agents[0] = self.agent(0)
        took = self.wait_for_round(3, known)
        print(f"the only endpoint again: 3 go on after {took:.1f} s", flush=True)
        agents.append(self.agent(3))  # it asks there as well
        self.wait_for_round(4, known)
        self.finish(agents)

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
        self.assertIn("the store at this address belongs to job \"none\"", out)
        self.finish(agents)


if __name__ == "__main__":
    unittest.main()
