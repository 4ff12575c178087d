"""Random schedules of two launchers on one host, which are started late, killed, stopped, terminated and
interrupted: each exit code is the one that docs/reference/exit-codes.md names.

SCALETRAIN_SEEDS="17 40-59" runs these schedules alone."""

import json
import os
import pathlib
import random
import signal
import time
import unittest

from end_to_end import random_recipes_test, support
from free_port import free_port

FEW, MANY = 3, 100
LIMIT_S = 240
STEPS = 200  # of 50 ms: longer than the events of a schedule
KILLED = -signal.SIGKILL
INTERRUPTED, STOPPED = 130, 75
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT)


class Model:
    """What the table of docs/reference/exit-codes.md says of a job of two launchers without restarts.

    `elastic`: --nnodes 1:2, else --nnodes 2. `members` are the launchers that run, the oldest first."""

    def __init__(self, elastic):
        self.elastic, self.members = elastic, []

    def world(self):
        """The number of nodes that train."""
        return len(self.members) if self.elastic or len(self.members) == 2 else 0

    def start(self, node):
        self.members.append(node)
        return {}

    def leads(self, node):
        return node == (self.members[0] if self.elastic else 0)

    def send(self, kind, node):
        """The exit codes of the launchers that a signal to `node` ends."""
        others = [member for member in self.members if member != node]
        if kind == signal.SIGINT:
            ends = {member: INTERRUPTED for member in self.members}
        elif kind == signal.SIGTERM:
            ends = {node: STOPPED, **({} if self.elastic else {other: STOPPED for other in others})}
        else:  # half of the nodes continue with the leader alone
            is_end = not self.elastic or self.leads(node)
            ends = {node: KILLED, **({other: STOPPED for other in others} if is_end else {})}
        self.members = [member for member in self.members if member not in ends]
        return ends

    def finish(self):
        """The exit codes of the launchers that are left when nothing happens any more."""
        return {member: 0 if self.world() else STOPPED for member in self.members}


def schedule(seed):
    """(elastic, [("start", node) or (signal, node)])."""
    draw = random.Random(f"departures {seed}")
    model = Model(elastic=seed % 2 == 1)
    events = []

    def add(kind, node):
        events.append((kind, node))
        if kind == "start":
            model.start(node)
        else:
            model.send(kind, node)

    add("start", draw.randrange(2))
    if draw.random() < 0.8:
        add("start", 1 - model.members[0])
    for _ in range(draw.choice([1, 1, 2, 3])):
        starts = [("start", node) for node in range(2) if node not in model.members]
        signals = [(kind, node) for kind in SIGNALS for node in model.members]
        add(*draw.choice(starts * 2 + signals))
    if len(model.members) == 1 and draw.random() < 0.5:
        add("start", 1 - model.members[0])
    return model.elastic, events


class DeparturesTest(support.RunTestCase):
    def start_node(self, node):
        meeting = (["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{self.port}"]
                   if self.elastic else ["--nnodes", "2", "--node-rank", node, "--master-addr", "127.0.0.1",
                                         "--master-port", self.port])
        return self.start(
            "launch", *meeting, "--last-call", "1s", "--join-timeout", "15s", "--heartbeat-timeout", "3s",
            "--grace", "5s", "--resume", "auto", self.path, env={"SCALETRAIN_FAULT": "slows@1"})

    def trains(self, world, since):
        """Whether a round of `world` nodes that began behind `since` has made a step."""
        try:
            begun = json.loads((self.run_folder / "environment.json").read_text())
            lines = (self.run_folder / "metrics.jsonl").read_text().splitlines()
            steps = [record for record in map(json.loads, lines) if record["event"] == "train"]
        except (FileNotFoundError, json.JSONDecodeError):
            return False  # not yet, or half a line
        return (begun["world_size"] == world and begun["time"] > since and bool(steps)
                and steps[-1]["time"] > begun["time"])

    def hears_signals(self, process):
        """Whether a launcher no longer dies of a signal: it blocks them and reads them from a descriptor."""
        lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
        masks = dict(line.split(":", 1) for line in lines)
        heard = int(masks["SigBlk"], 16) | int(masks["SigCgt"], 16)
        return all(heard >> (kind - 1) & 1 for kind in (signal.SIGTERM, signal.SIGINT))

    def check_end(self, node, expected, said):
        process = self.nodes.pop(node)
        out, err = process.communicate(timeout=LIMIT_S)
        self.assertEqual(expected, process.returncode, f"{said}: node {node}\n{out}{err}")
        self.assert_nothing_left(process)

    def run_event(self, kind, node, said):
        since = time.time()
        if kind == "start":
            self.nodes[node] = self.start_node(node)
            ends = self.model.start(node)
            support.wait_until(lambda: self.hears_signals(self.nodes[node]), f"{said}: node {node}", LIMIT_S)
        else:
            ends = self.model.send(kind, node)
            self.nodes[node].send_signal(kind)
        for other, code in sorted(ends.items(), key=lambda end: end[0] == node):
            if kind == signal.SIGSTOP and other == node:
                continue
            self.check_end(other, code, said)
        if self.model.world():
            # A launcher that joins a round that trains begins a new one.
            support.wait_until(lambda: self.trains(self.model.world(), since), f"{said}: training", LIMIT_S)
        if kind == signal.SIGSTOP:
            self.nodes[node].kill()
            self.check_end(node, KILLED, said)

    def check_schedule(self, seed):
        self.elastic, events = schedule(seed)
        self.model, self.nodes, self.port = Model(self.elastic), {}, free_port()
        self.path = self.recipe(f"departures-{seed}", steps=STEPS, batch={"global": 32, "per_device": 8},
                                threads=1, checkpoint={"every": {"steps": 5}})
        self.run_folder = self.folder / f"departures-{seed}"
        said = []
        for kind, node in events:
            said.append(f"{getattr(kind, 'name', kind)} {node}")
            self.run_event(kind, node, f"--nnodes {'1:2' if self.elastic else '2'}: {', '.join(said)}")
        for node, code in self.model.finish().items():
            self.check_end(node, code, f"{', '.join(said)}, end")

    def test_each_exit_code_is_as_documented(self):
        for seed in random_recipes_test.seeds(range(FEW), range(MANY)):
            with self.subTest(seed=seed):
                self.check_schedule(seed)


if __name__ == "__main__":
    unittest.main()
