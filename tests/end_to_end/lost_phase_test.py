"""A rank that is lost in any exchange of any layout is named, and the job ends within 10 s."""

import time
import unittest

from end_to_end import context_test, expert_test, support, text_test

LLAMA, MIXTRAL = context_test.LLAMA, expert_test.MIXTRAL
ENDS_WITHIN_S = 10  # a promise, also in docs/internals/reliability.md
STEP = 6  # where ranks are lost, which is also validated and saved behind
MUON, LAMB = ({"optimizer": {"name": name, "lr": 0.002}} for name in ("muon", "lamb"))
INT8, POWER = ({"compress": {"name": name}} for name in ("int8", "powersgd"))
# What trains: ranks, their mesh, and what else a recipe says.
LAYOUTS = {
    "copies": (2, {}, {}),
    "int8": (2, {}, INT8),
    "powersgd": (2, {}, POWER),
    "optimizer": (2, {"shard": 2, "shard_level": "optimizer"}, {}),
    "gradients": (2, {"shard": 2, "shard_level": "gradients"}, {}),
    "parameters": (2, {"shard": 2}, {}),
    "muon": (2, {"shard": 2}, MUON),
    "lamb": (2, {"shard": 2}, LAMB),
    "clipped": (2, {"shard": 2}, {"clip": {"adaptive": 0.01}}),
    "shards of copies": (4, {"shard": 2}, {}),
    "tensor": (2, {"tensor": 2}, {}),
    "sequence": (2, {"tensor": 2, "sequence": True}, {}),
    "pipeline": (2, {"pipeline": 2}, {}),
    "zero_bubble": (2, {"pipeline": 2, "schedule": "zero_bubble"}, {}),
    "expert": (2, {"expert": 2}, {"model": MIXTRAL}),
    "context": (2, {"context": 2}, {}),
    "pipeline x tensor": (4, {"pipeline": 2, "tensor": 2}, {}),
}
# Where a rank is lost: the layout, its number, the collective of step STEP by its kind or name, and
# which of those. What a model of two blocks asks for in forward comes first, then backward's. The short
# form has each layout, and what is behind the step.
SHORT = [
    ("copies", 1, "gradients", 1),
    ("int8", 1, "all-gather", 1),
    ("powersgd", 0, "gradients", 1),
    ("optimizer", 1, "reduce-scatter", 1),
    ("gradients", 0, "reduce-scatter", 1),
    ("parameters", 0, "parameters", 6),  # backward
    ("muon", 1, "tensors to their owners", 1),
    ("lamb", 1, "all-to-all", 1),
    ("clipped", 1, "norms of units", 1),
    ("shards of copies", 3, "gradients of the replicas", 1),
    ("tensor", 0, "row-parallel sum", 9),  # backward
    ("sequence", 0, "all-gather", 1),
    ("pipeline", 0, "activations", 2),  # who sends
    ("zero_bubble", 0, "gradients of activations", 1),
    ("expert", 0, "tokens of the experts", 2),  # forward
    ("context", 1, "keys and values", 1),
    ("pipeline x tensor", 1, "activations", 1),
    ("tensor", 0, "evaluation sums", 1),
]
PHASES = SHORT + [
    ("copies", 0, "step consensus", 1),
    ("optimizer", 0, "all-gather", 1),
    ("parameters", 1, "parameters", 2),  # forward
    ("parameters", 1, "reduce-scatter", 2),
    ("parameters", 0, "norm of the gradients", 1),
    ("muon", 0, "tensors of their owners", 1),
    ("tensor", 1, "row-parallel sum", 1),  # forward
    ("sequence", 1, "reduce-scatter", 2),
    ("pipeline", 1, "activations", 2),  # who receives
    ("pipeline", 1, "gradients of activations", 1),
    ("pipeline", 0, "gradients of activations", 2),
    ("expert", 1, "token counts of the experts", 1),
    ("expert", 1, "tokens of the experts", 6),  # backward
    ("context", 0, "gradients of keys and values", 1),
    ("pipeline x tensor", 2, "row-parallel sum", 1),
    # Behind the step.
    ("pipeline", 1, "end of evaluation", 1),
]


class LostPhaseTest(text_test.TextTestCase):
    def setUp(self):
        super().setUp()
        self.data = self.tokenize()

    def lose(self, exchange, layout, rank, collective, number):
        ranks, parallel, changes = LAYOUTS[layout]
        name = f"{exchange}-{layout}-{rank}-{collective}-{number}".replace(" ", "_")
        keys = {"model": LLAMA, "optimizer": text_test.ADAMW, "data": self.data, "threads": 1,
                "batch": {"global": 16, "per_device": 4}, "clip": {"norm": 1.0}, "steps": 2 * STEP,
                "validate": {"every": {"steps": STEP}}, "checkpoint": {"every": {"steps": STEP}},
                "parallel": parallel or None, "dist": {"cpu": exchange}}
        path = self.recipe(name, **{**keys, **changes})
        fault = f"kill@{STEP},{rank},{collective},{number}"
        process = self.start("launch", "--nproc", ranks, path, env={"SCALETRAIN_FAULT": fault})
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        end = time.time()
        self.assertEqual(137, process.returncode, err)
        self.assertIn(f"rank {rank} failed first: killed by SIGKILL", err)
        # The step before is written just before the rank is lost.
        late = end - support.records(self.folder / name, "train")[-1]["time"]
        self.assertLess(late, ENDS_WITHIN_S, err)
        self.assert_nothing_left(process)
        return late

    def lose_all(self, exchange, first):
        """Loses a rank in every second phase of SHORT from number `first` on: the two exchanges share the
        phases. With SCALETRAIN_LONG=1 each exchange has all of PHASES."""
        longest, phases = 0, PHASES if support.LONG else SHORT[first::2]
        for phase in phases:
            with self.subTest(f"{exchange}: {phase}"):
                longest = max(longest, self.lose(exchange, *phase))
        print(f"{exchange}: {len(phases)} ranks lost, the longest job ended {longest:.1f} s after")

    def test_in_memory_that_ranks_share(self):
        self.lose_all("shm", 0)

    def test_over_the_network(self):
        self.lose_all("gloo", 1)


if __name__ == "__main__":
    unittest.main()
