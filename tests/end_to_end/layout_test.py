"""explain launch and bench exposed: what a layout costs on devices that are not there."""

import json
import unittest

from end_to_end import support

GB = 1e9
SEVENTY_BILLION = 'parallel={"pipeline": 4, "tensor": 8, "shard": 8}'


class LayoutTest(support.RunTestCase):
    def explain(self, *arguments, expect=0):
        """`expect` is 65 where the data are not here, which is said after the explanation."""
        done = self.run_scaletrain("explain", "launch", "--json", *arguments, expect=expect)
        self.assertEqual(expect == 65, "/data/train/tokens: " in done.stderr, done.stderr)
        return json.loads(done.stdout)

    def rows(self, table):
        return {row["name"]: (row["value"], row["from"]) for row in table}

    def test_a_model_of_seventy_billion_on_1024_devices(self):
        found = self.explain("--nproc", 8, "--nnodes", 128, support.ROOT / "recipes/llama_70b.json",
                             expect=65)
        self.assertEqual(["a launch needs --master-addr, the address of node 0"], found["notes"])
        mesh = self.rows(found["mesh"])
        self.assertEqual("8", mesh["replica"][0])
        self.assertEqual(
            ("128", "rank 0's group: ranks 0-127, between nodes 0-15"), mesh["shard"])
        self.assertEqual("ranks 1016-1023", mesh["node 127"][0])
        memory = self.rows(found["memory"])
        # Llama 2 70B's 68.98 billion parameters, 4 bytes each, in 128 parts; AdamW has two of them.
        part = 68_976_648_192 * 4 / 128 / GB
        for kind, times in (("parameters", 1), ("gradients", 1), ("optimizer", 2)):
            size, unit = memory[kind][0].split()
            self.assertEqual("GB", unit)
            self.assertAlmostEqual(times * part, float(size), delta=0.01 * times * part)
        # 80 blocks keep their input, 4096 x 8192 numbers of 2 or 4 bytes.
        self.assertGreater(float(memory["activations"][0].split()[0]), 80 * 4096 * 8192 * 2 / GB)
        traffic = self.rows(found["traffic"])
        # Forward and backward, but for the last unit once: 82 + 81.
        self.assertIn("of 163 all-gathers", traffic["shard, parameters"][0])
        self.assertIn("of 82 reduce-scatters", traffic["shard, gradients"][0])
        self.assertIn("8 ranks on 8 nodes", traffic["replica, gradients"][1])

    def test_the_same_in_stages_of_tensor_ranks(self):
        found = self.explain("--nproc", 8, "--nnodes", 128, "--set", SEVENTY_BILLION,
                             support.ROOT / "recipes/llama_70b.json", expect=65)
        keys = self.rows(found["recipe"])
        # 32 micro-batches through 4 stages: 3 / (32 + 3).
        self.assertEqual("8.6 %", keys["pipeline idle share"][0])
        self.assertEqual("4 3 2 1", keys["micro-batches held by rank"][0])
        mesh = self.rows(found["mesh"])
        self.assertEqual(("8", "rank 0's group: ranks 0-7, inside node 0"), mesh["tensor"])
        self.assertEqual("4", mesh["replica"][0])
        # Rank 256 has 20 of the 80 blocks, of each a 64th.
        block = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
        size, unit = self.rows(found["memory"])["rank 256: parameters"][0].split()
        self.assertEqual("GB", unit)
        self.assertAlmostEqual(20 * block * 4 / 64 / GB, float(size), delta=0.01)
        traffic = self.rows(found["traffic"])
        # Of each of 32 micro-batches: parameters of 20 blocks forward and backward, gradients once;
        # 5 sums of each block over tensor ranks, since recomputation needs but the first again.
        self.assertIn("of 1280 all-gathers", traffic["rank 256: shard, parameters"][0])
        self.assertIn("of 640 reduce-scatters", traffic["rank 256: shard, gradients"][0])
        self.assertIn("of 3200 all-reduces", traffic["rank 256: tensor, activations"][0])
        # 4096 x 8192 numbers of 4 bytes.
        for name in ("activations", "their gradients"):
            self.assertEqual("4.29 GB of 32 sends", traffic[f"rank 256: pipeline, {name}"][0])
        self.assertIn("4 ranks on 4 nodes", traffic["rank 256: replica, gradients"][1])

    def test_one_rank_of_1024_runs_a_step_of_64_tokens(self):
        small = {"vocab_size": 512, "dim": 512, "hidden": 1792, "depth": 8, "positions": 64}
        flags = [part for key, value in small.items() for part in ("--set", f"model.{key}={value}")]
        done = json.loads(self.run_scaletrain(
            "bench", "exposed", "--json", "--nproc", 8, "--nnodes", 128, "--steps", 1, "--set",
            SEVENTY_BILLION, *flags, "--set", "data.context=64", "--set",
            'batch={"per_device": 1, "global": 128}', "--set", "threads=1",
            support.ROOT / "recipes/llama_70b.json").stdout)
        # A stage of 3 units, 4 micro-batches: of each 6 gatherings and 3 scatterings, 5 sums of
        # each of 2 blocks and one of the embedding, and what it sends.
        self.assertGreaterEqual(done["calls"], 4 * (6 + 3 + 2 * 5 + 1 + 1))
        self.assertGreater(done["bytes"], 0)

    def test_the_stages_of_a_pipeline_have_rows_of_their_own(self):
        recipe = self.recipe(model={"name": "mlp", "num_classes": 10, "layers": 6},
                             parallel={"pipeline": 2}, batch={"per_device": 4, "accumulate": 4})
        found = self.explain("--nproc", 2, "--nnodes", 2, recipe)
        memory = self.rows(found["memory"])
        self.assertIn("rank 0: gradients", memory)
        self.assertIn("of 2 micro-batches of 4 in progress", memory["rank 0: activations"][1])
        self.assertIn("of 1 micro-batch of 4 in progress", memory["rank 2: activations"][1])
        traffic = self.rows(found["traffic"])
        self.assertIn("4 sends", traffic["rank 0: pipeline, activations"][0])
        self.assertIn("2 ranks on 2 nodes", traffic["rank 0: pipeline, activations"][1])
        self.assertIn("inside a node", traffic["rank 0: replica, gradients"][1])

    def test_stages_in_parts_whose_ranks_share_sequences(self):
        (self.folder / "text.bin").write_bytes(b"\1\0" * 2049)
        llama = {"name": "llama", "vocab_size": 64, "positions": 64, "dim": 32, "depth": 6,
                 "heads": 4, "kv_heads": 4, "hidden": 48}
        recipe = self.recipe(model=llama, data={"train": {"tokens": str(self.folder / "text.bin")},
                                                "context": 64},
                             parallel={"pipeline": 2, "shard": 2, "context": 2},
                             batch={"per_device": 4, "accumulate": 4})
        found = self.explain("--nproc", 8, recipe)
        traffic = self.rows(found["traffic"])
        # A rank has 4 of 8 units, and of each micro-batch 4 x 32 tokens; keys and values, 2 x 32
        # numbers of 4 bytes of each, go to the other rank forward, backward again, and their
        # gradients backward to it and home: 4 x 3 attentions x 4 micro-batches.
        size = 4 * 32 * 2 * 32 * 4
        self.assertIn(f"{48 * size / 1e6:.3g} MB of 48 sends",
                      traffic["rank 0: context, keys and values"][0])
        self.assertIn("2 ranks inside a node", traffic["rank 0: context, keys and values"][1])
        # Forward and backward of its 4 units; 4 blocks of gradients in each micro-batch.
        self.assertIn("of 32 all-gathers", traffic["rank 0: shard, parameters"][0])
        self.assertIn("of 16 reduce-scatters", traffic["rank 0: shard, gradients"][0])
        self.assertIn("of 4 all-reduces", traffic["rank 0: context, gradients"][0])
        self.assertIn("rank 4: parameters", self.rows(found["memory"]))

    def test_what_is_not_known_is_a_note(self):
        recipe = self.recipe(batch={"per_device": "auto", "global": 64, "memory_mb": 1000})
        found = self.explain("--nproc", 2, recipe)
        self.assertEqual([], found["memory"])
        self.assertIn("memory and traffic are not known", found["notes"][0])

    def test_one_rank_of_a_mesh_that_is_not_there(self):
        recipe = self.recipe(parallel={"shard": 8})
        flags = ("bench", "exposed", recipe, "--nproc", 4, "--nnodes", 4, "--steps", 1, "--json")
        done = json.loads(self.run_scaletrain(*flags, "--latency-us", 0, "--inside-gbs", 0,
                                              "--between-gbs", 0).stdout)
        self.assertEqual(0, done["exchange_s"])
        self.assertGreater(done["calls"], 0)
        slow = json.loads(self.run_scaletrain(*flags, "--latency-us", 2000, "--rank", 15).stdout)
        self.assertGreaterEqual(slow["exchange_s"], slow["calls"] * 0.002)
        self.assertGreater(slow["exposed_s"], 0)
        self.assertGreater(slow["step_s"], slow["exposed_s"])
        text = self.run_scaletrain("bench", "exposed", recipe, "--nproc", 8, "--steps", 1).stdout
        self.assertRegex(text, r"(?m)^exposed: .* % of the exchanges$")
        refused = self.run_scaletrain("bench", "exposed", recipe, "--nproc", 8, "--rank", 8, expect=2)
        self.assertIn("there are ranks 0 to 7", refused.stderr)

    def test_a_stage_that_is_sent_shapes_is_refused(self):
        recipe = self.recipe(model={"name": "mlp", "num_classes": 10, "layers": 6},
                             parallel={"pipeline": 2}, batch={"per_device": 4, "accumulate": 4})
        flags = ("bench", "exposed", recipe, "--nproc", 2, "--steps", 1)
        self.run_scaletrain(*flags)
        refused = self.run_scaletrain(*flags, "--rank", 1, expect=2)
        self.assertIn("known only to the stage before", refused.stderr)


if __name__ == "__main__":
    unittest.main()
