"""Several launchers with a static address: one start, one verdict. All nodes are this machine."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from free_port import free_port
from launcher.launch_support import LIMIT_S, SCALETRAIN, LaunchTestCase

WAIT = "while [ ! -e done ]; do sleep 0.05; done"


class NodesTestCase(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def node(self, rank, *words, nodes=2, flags=(), env=None, address="127.0.0.1", nproc=1):
        return self.start("launch", "--nnodes", nodes, "--node-rank", rank, "--nproc", nproc,
                          "--master-addr", address, "--master-port", self.port, *flags, "--",
                          *words, env=env)

    def shell(self, rank, script, **options):
        return self.node(rank, "sh", "-c", script, **options)

    def finish(self, *nodes):
        """Each node's status and standard error."""
        ends = []
        for node in nodes:
            node.out, err = node.communicate(timeout=LIMIT_S)
            ends.append((node.returncode, err))
        self.assert_nothing_left()
        return ends

    def wait_for_ranks(self, *ranks):
        self.wait_for_files(*(f"ready{rank}" for rank in ranks))


class Start(NodesTestCase):
    def test_workers_of_all_nodes_meet_at_one_store(self):
        script = "echo $RANK $LOCAL_RANK $WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT"
        nodes = [self.shell(rank, script, nproc=2) for rank in (1, 0)]  # in any order
        (first, said), (second, leader_said) = self.finish(*nodes)
        self.assertEqual((0, 0), (first, second))
        self.assertRegex(said, r"(?m)^joined the job at \S+: this is node 1 of 2$")
        self.assertNotIn("joined the job", leader_said)
        lines = sorted((nodes[0].out + nodes[1].out).splitlines())
        self.assertEqual(["0 0 4 0 2", "1 1 4 0 2", "2 0 4 1 2", "3 1 4 1 2"],
                         [line.rsplit(" ", 1)[0] for line in lines])
        (store,) = {line.rsplit(" ", 1)[1] for line in lines}
        self.assertRegex(store, r"^127\.0\.0\.1:\d+$")

    def test_a_node_that_does_not_come_is_named_to_all_who_came(self):
        flags = ["--join-timeout", "6s"]
        nodes = [self.shell(rank, "exit 0", nodes=4, flags=flags) for rank in (0, 2)]
        for status, err in self.finish(*nodes):
            self.assertEqual(75, status)
            self.assertIn("rendezvous: 2 of 4 nodes came within 6 s; missing: node 1, node 3", err)

    def test_a_first_node_that_does_not_come_is_named_with_its_address(self):
        for address, why in (("127.0.0.1", "Connection refused"),
                             ("no-such-host.invalid", "its name does not resolve")):
            node = self.shell(1, "exit 0", flags=["--join-timeout", "1s"], address=address)
            ((status, err),) = self.finish(node)
            self.assertEqual(75, status)
            self.assertIn("rendezvous: the other nodes were not found within 1 s: "
                          f"the store at {address}:{self.port}: {why}", err)

    def test_a_port_in_use_is_a_usage_error(self):
        with socket.create_server(("127.0.0.1", self.port)):
            ((status, err),) = self.finish(self.shell(0, "exit 0"))
        self.assertEqual(2, status)
        self.assertIn(f"--master-port {self.port}: cannot listen on it", err)

    def test_strangers_are_refused_and_the_job_runs(self):
        first = self.shell(0, "exit 0", flags=["--rdzv-id", "mine"])
        mine = ["--rdzv-id", "mine"]
        strangers = [
            (dict(flags=["--rdzv-id", "other"]), "belongs to job \"mine\""),
            (dict(flags=mine, env={"SCALETRAIN_JOB_TOKEN": "x"}), "has another token for job"),
            (dict(flags=mine, nodes=3), "it was started with --nnodes 3, and the job with 2"),
            (dict(flags=mine, nproc=3), "it was started with 3 workers a node, and the job with 1"),
        ]
        for options, text in strangers:
            ((status, err),) = self.finish_one(self.shell(1, "exit 0", **options))
            self.assertEqual(2, status, err)
            self.assertIn(text, err)
        twice = self.shell(0, "exit 0", flags=mine)
        self.assertEqual(2, twice.wait(LIMIT_S))
        self.assertEqual([0, 0], [status for status, _ in
                                  self.finish(first, self.shell(1, "exit 0", flags=mine))])

    def finish_one(self, node):
        _, err = node.communicate(timeout=LIMIT_S)
        return [(node.returncode, err)]

    def with_store(self, script):
        """Node 0, whose store is served by a script; it waits for two nodes."""
        shutil.copy(SCALETRAIN, self.folder / "scaletrain")
        worker = self.folder / "scaletrain-worker"
        worker.write_text("#!/bin/sh\n" + script)
        worker.chmod(0o755)
        node = subprocess.Popen(
            [self.folder / "scaletrain", "launch", "--nnodes", "2", "--node-rank", "0",
             "--master-addr", "127.0.0.1", "--master-port", str(self.port), "--", "true"],
            stderr=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment())
        self.addCleanup(node.communicate, timeout=LIMIT_S)
        self.addCleanup(node.kill)
        return node

    def test_a_store_that_ends_at_once_is_told(self):
        node = self.with_store("echo no library >&2; exit 127")
        _, err = node.communicate(timeout=LIMIT_S / 2)
        self.assertEqual(1, node.returncode)
        self.assertIn("no library\nthe store: the process that serves it ended: exit code 127\n", err)
        self.assert_nothing_left()

    def test_a_signal_while_the_store_starts_ends_the_wait(self):
        node = self.with_store(f"touch {self.folder}/serving; exec sleep 1000")
        self.wait_for_files("serving")
        node.terminate()
        self.assertEqual(1, node.wait(LIMIT_S / 2))
        self.assert_nothing_left()

    def test_ctrl_c_before_all_nodes_have_met_ends_the_job_of_those_who_came(self):
        for interrupted in (0, 1):
            nodes = [self.shell(rank, "exit 0", nodes=3, flags=["--log-dir", f"logs{interrupted}"])
                     for rank in (0, 1)]
            self.wait_for(lambda: self.joined(f"logs{interrupted}") == 2, "two nodes to join")
            nodes[interrupted].send_signal(signal.SIGINT)
            ends = self.finish(*nodes)
            self.assertEqual([1, 1], [status for status, _ in ends], ends)
            self.assertRegex(ends[1 - interrupted][1], r"stopped: host \S+: its launcher received SIGINT\n")

    def joined(self, logs):
        """How many nodes the leader has seen join, by its journal."""
        files = (self.folder / logs).glob("*/*.jsonl")
        return sum(json.loads(line)["event"] == "join" for file in files
                   for line in file.read_text().splitlines())

    def test_a_signal_while_waiting_ends_the_wait(self):
        node = self.shell(1, "exit 0")
        time.sleep(0.3)
        node.terminate()
        ((status, _),) = self.finish(node)
        self.assertEqual(1, status)


class TheVerdict(NodesTestCase):
    FAULTS = [("exit 7", "exit code 7"), ("kill -SEGV $$", "killed by SIGSEGV"),
              ("kill -KILL $$", "killed by SIGKILL")]

    def test_every_node_tells_the_same_cause_and_ends_at_once(self):
        for fault, text in self.FAULTS:
            script = (f"touch ready$RANK; [ $RANK = 2 ] || exec sleep 1000;"
                      f"while [ ! -e ready0 -o ! -e ready3 ]; do sleep 0.01; done;"
                      f"echo the last line >&2; {fault}")
            nodes = [self.shell(rank, script, nproc=2) for rank in (0, 1)]
            self.wait_for_ranks(0, 1, 2, 3)
            start = time.monotonic()
            ends = self.finish(*nodes)
            self.assertLess(time.monotonic() - start, 5)
            verdicts = set()
            for status, err in ends:
                self.assertEqual(1, status, err)
                verdicts.add(err[err.index("rank 2 failed first"):])
            (verdict,) = verdicts
            self.assertRegex(verdict.splitlines()[0],
                             rf"^rank 2 failed first: {text} \(node 1, host \S+, local rank 0, pid \d+\)$")
            self.assertIn("    | the last line\n", verdict)
            for rank in range(4):
                (self.folder / f"ready{rank}").unlink()

    def test_an_exception_is_told_on_every_node(self):
        record = ("import json,os,sys\n"
                  "json.dump({'message': {'message': 'ValueError: boom', 'extraInfo': {}}},"
                  " open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w'))\nsys.exit(1)")
        ends = self.finish(self.shell(0, "exec sleep 1000"),
                           self.node(1, sys.executable, "-c", record))
        for status, err in ends:
            self.assertEqual(1, status)
            self.assertIn("  cause: ValueError: boom\n", err)

    def test_the_logs_of_every_node_stay_and_are_named(self):
        script = "echo $RANK >&2; [ $RANK = 1 ] && exit 3; sleep 1000"
        nodes = [self.shell(rank, script, flags=["--redirects", "3"]) for rank in (0, 1)]
        for rank, (status, err) in enumerate(self.finish(*nodes)):
            self.assertEqual(1, status)
            self.assertIn("rank 1 failed first: exit code 3", err)
            words = r"its log: (\S+)" if rank == 1 else r"the logs of this node: (\S+)"
            path = pathlib.Path(re.search(words, err).group(1))
            log = path if rank == 1 else path / "attempt_0/0/stderr.log"
            self.assertEqual(f"{rank}\n", log.read_text())

    def test_failure_json_is_written_on_every_node(self):
        flags = ["--log-dir", "logs"]
        self.finish(self.shell(0, "exec sleep 1000", flags=flags),
                    self.shell(1, "exit 9", flags=flags))
        files = list((self.folder / "logs").glob("*/failure.json"))
        self.assertEqual(2, len(files))
        for file in files:
            failure = json.loads(file.read_text())
            self.assertEqual((1, 1, 0, 9), tuple(failure[key] for key in (
                "node", "rank", "local_rank", "exit_code")))

    def test_a_launcher_that_is_killed_is_named(self):
        script = "touch ready$RANK; exec sleep 1000"
        nodes = [self.shell(rank, script, nodes=3, flags=["--heartbeat-timeout", "2s"])
                 for rank in range(3)]
        self.wait_for_ranks(0, 1, 2)
        nodes[1].kill()
        for status, err in self.finish(nodes[0], nodes[2]):
            self.assertEqual(1, status)
            self.assertRegex(err, r"node 1, host \S+ was lost: its launcher has sent no heartbeat for 2 s")

    def test_the_node_with_the_store_that_is_killed_is_named(self):
        script = "touch ready$RANK; exec sleep 1000"
        nodes = [self.shell(rank, script) for rank in range(2)]
        self.wait_for_ranks(0, 1)
        nodes[0].kill()
        start = time.monotonic()
        ((status, err),) = self.finish(nodes[1])
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(75, status)
        self.assertIn("the node with the store was lost: ", err)

    def test_a_launcher_that_stands_still_is_named(self):
        script = "touch ready$RANK; exec sleep 1000"
        nodes = [self.shell(rank, script, flags=["--heartbeat-timeout", "2s"]) for rank in range(2)]
        self.wait_for_ranks(0, 1)
        nodes[1].send_signal(signal.SIGSTOP)
        status, err = nodes[0].communicate(timeout=LIMIT_S)[1], None
        self.assertIn("was lost: its launcher has sent no heartbeat for 2 s", status)
        nodes[1].kill()

    def test_a_signal_on_one_node_stops_all(self):
        nodes = [self.shell(rank, "touch ready$RANK; exec sleep 1000",
                            flags=["--max-restarts", "3"]) for rank in range(2)]
        self.wait_for_ranks(0, 1)
        nodes[1].terminate()
        (first, told), (second, _) = self.finish(*nodes)
        self.assertEqual((1, 1), (first, second))
        self.assertIn("stopped: node 1: its launcher received SIGTERM", told)


class Restarts(NodesTestCase):
    def test_all_nodes_start_again_together_with_a_fresh_store(self):
        script = ("echo $TORCHELASTIC_RESTART_COUNT $MASTER_PORT >>log$RANK;"
                  "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0;"
                  # Rank 1 fails when rank 0 has written its line.
                  "[ $RANK = 1 ] && until grep -q ^$TORCHELASTIC_RESTART_COUNT log0; do sleep 0.05; done;"
                  "[ $RANK = 1 ] && exit 3; exec sleep 1000")
        flags = ["--max-restarts", "2", "--restart-delay", "100ms"]
        ends = self.finish(*[self.shell(rank, script, flags=flags) for rank in range(2)])
        logs = [(self.folder / f"log{rank}").read_text() for rank in range(2)]
        self.assertEqual(logs[0], logs[1])
        counts, ports = zip(*(line.split() for line in logs[0].splitlines()))
        self.assertEqual(("0", "1", "2"), counts)
        self.assertEqual(3, len(set(ports)))
        for status, err in ends:
            self.assertEqual(0, status, err)
            self.assertIn("starting again: restart 1 of 2\n", err)
            self.assertIn("starting again: restart 2 of 2, in 0.1 s\n", err)

    def test_a_budget_by_the_hour_ends_restarts(self):
        flags = ["--max-restarts", "9", "--restarts-per-hour", "2", "--restart-delay", "0s"]
        script = "echo x >>attempts$RANK; exit 1"
        for status, err in self.finish(*[self.shell(rank, script, flags=flags)
                                         for rank in range(2)]):
            self.assertEqual(1, status)
            self.assertIn("not started again: 2 restarts in the last hour", err)
        self.assertEqual("x\n" * 3, (self.folder / "attempts0").read_text())


if __name__ == "__main__":
    unittest.main()
