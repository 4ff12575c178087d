"""Histograms of sharded models are those of one rank: each element of a weight and its gradient counts once."""
import json
import unittest

from end_to_end import support, text_test
from end_to_end.expert_test import MIXTRAL

GPT2 = {**text_test.MODEL, "heads": 4, "dropout": 0.0}  # its embedding and its head are one tensor
LAYOUTS = {
    "gpt2": (GPT2, {
        "data": (2, {}),
        "shard": (2, {"shard": 2}),
        "pipeline-tensor": (4, {"pipeline": 2, "tensor": 2, "sequence": True}),
    }),
    "mixtral": (MIXTRAL, {
        "expert": (2, {"expert": 2}),
        "all": (8, {"expert": 2, "shard": 2, "pipeline": 2, "tensor": 2, "sequence": True}),
    }),
}
SHORT = {"gpt2": ["shard", "pipeline-tensor"], "mixtral": ["all"]}


class HistogramsTest(text_test.TextTestCase):
    def histograms(self, name, ranks, **changes):
        """{tensor: histogram} of the first step."""
        path = self.recipe(name, optimizer=text_test.ADAMW, batch={"global": 8, "per_device": 2}, threads=1,
                           steps=1, log={"every": {"steps": 1}, "histograms": {"steps": 1}}, **changes)
        self.run_scaletrain("launch", "--nproc", ranks, path)
        (line,) = (self.folder / name / "histograms.jsonl").read_text().splitlines()
        return json.loads(line)["histograms"]

    def assert_same(self, expected, found):
        self.assertEqual(list(expected), list(found))
        for name, one in expected.items():
            other = found[name]
            with self.subTest(name):
                self.assertEqual((one["not_finite"], sum(one["counts"])), (other["not_finite"], sum(other["counts"])))
                if name.startswith("weights/"):
                    self.assertEqual((one["min"], one["max"], one["counts"]),
                                     (other["min"], other["max"], other["counts"]))
                # Gradients are sums in another order.
                largest = max(abs(one["min"]), abs(one["max"]))
                for field in ("min", "max"):
                    self.assertAlmostEqual(one[field], other[field], delta=1e-4 * largest)
                self.assertAlmostEqual(one["sum"], other["sum"], delta=1e-4 * largest * sum(one["counts"]))
                self.assertAlmostEqual(one["sum_squares"], other["sum_squares"], delta=1e-3 * one["sum_squares"])

    def test_each_layout_has_the_histograms_of_one_rank(self):
        data = self.tokenize()
        for name, (model, layouts) in LAYOUTS.items():
            alone = self.histograms(name, 1, model=model, data=data)
            self.assertIn("gradients/" + next(iter(alone)).removeprefix("weights/"), alone)
            for layout in layouts if support.LONG else SHORT[name]:
                ranks, parallel = layouts[layout]
                self.assert_same(alone, self.histograms(f"{name}-{layout}", ranks, model=model, data=data,
                                                        parallel=parallel or None))


if __name__ == "__main__":
    unittest.main()
