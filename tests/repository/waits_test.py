"""What a step runs reads no value of a tensor: on a device each read waits for all queued work.

Values come to the host through lib/train/rules/outcomes.h alone."""
import re
import unittest

import tracked

# What a step runs.
FOLDERS = ["units", "input", "nn", "precision", "optim", "parallel", "local_sgd", "task",
           "engine"]
FILES = [f"lib/train/{name}.*"
         for name in ["model/buffers", "loop/reporter", "loop/trainer", "run/step", "run/step_numbers",
                      "rules/straggler_watch", "rules/vote"]]
OUTCOMES = ["lib/train/rules/outcomes.cpp"]
# How many rows each expert takes are shapes, which the host must know; and how many elements each
# rank has, once before the first step. Decoupled replicas get weights from the host, and checkpoints
# are read and written there. The cause of an anomalous step is looked for after it.
SHAPES = {"lib/nn/experts/routing.cpp": "const Tensor host = chosen.cpu();",
          "lib/parallel/expert_exchange.cpp": "return experts.to_host(others);",
          "lib/engine/tensor_owners.cpp": "all = ranks.to_host(all);",
          "lib/engine/not_finite.cpp": "at::isfinite(tensor).all().item<bool>();",
          "lib/units/shard.cpp": "const at::Tensor local = shard.tensor.detach().cpu().contiguous();",
          "lib/local_sgd/tensor_bytes.h":
              "inline at::Tensor on_host(const at::Tensor& weights) { return weights.cpu(); }"}

READS = re.compile(r"\.item\s*[<(]|\.cpu\s*\(|\.to\s*\(\s*(?:at|torch|c10)::kCPU|\bto_host\s*\(|"
                   r"\bis_nonzero\s*\(|\b_local_scalar_dense\b")


def reads(text):
    """(line number, line) of each read; comments are left out."""
    lines = (line.split("//")[0] for line in text.split("\n"))
    return [(number, line.strip()) for number, line in enumerate(lines, 1) if READS.search(line)]


class Waits(unittest.TestCase):
    def test_a_step_reads_no_value(self):
        patterns = [f"lib/{folder}/*.{end}" for folder in FOLDERS for end in ("h", "cpp")]
        paths = [path for path in tracked.files(*patterns, *FILES) if str(path) not in OUTCOMES]
        self.assertGreater(len(paths), 40)
        found = [f"{path}:{number}: {line}" for path in paths
                 for number, line in reads(tracked.text(path)) if SHAPES.get(str(path)) != line]
        self.assertEqual("", "\n".join(found), "lib/train/rules/outcomes.h reads values")

    def test_the_named_files_are_there(self):
        for name in [*FILES, *OUTCOMES, *SHAPES]:
            self.assertTrue(tracked.files(name), name)


class TheCheckItself(unittest.TestCase):
    def test_reads_are_found(self):
        for line in ["const double norm = all.item<double>();", "auto host = loss.cpu();",
                     "x.item().toDouble()", "sums.to(at::kCPU)", "group.to_host(sums)",
                     "a.item <float>()", "at::_local_scalar_dense(a)", "if (at::is_nonzero(a)) {"]:
            self.assertEqual([(2, line)], reads("\n" + line + "\n"))

    def test_what_is_no_read_is_not(self):
        for line in ["for (const auto& item : model.named_parameters()) use(item.key());",
                     "// loss.item() would wait", "if (tensor.is_cpu()) return;",
                     "tensor.to(device, true)", "const at::Device device = at::kCPU;"]:
            self.assertEqual([], reads(line))


if __name__ == "__main__":
    unittest.main()
