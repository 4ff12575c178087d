"""docs/add-an-optimizer.md is followed: its row and its file make an optimizer, whose steps are checked
against the formula."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import page

LR, DECAY, DEAD_ZONE = 0.01, 0.1, 0.002


class AddAnOptimizer(unittest.TestCase):
    def run_program(self, *arguments):
        done = subprocess.run(list(map(str, arguments)), timeout=page.LIMIT_S, capture_output=True,
                              text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def test_the_page_makes_an_optimizer(self):
        if not (page.PROGRAMS / "parity_program").exists():
            self.skipTest("built without LibTorch")
        import torch
        from safetensors.torch import load_file, save_file

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            program = page.Page("docs/add-an-optimizer.md", "lib/recipe/optimizers.def",
                                "lib/optim/optimizer.cpp").program(self, folder)
            recipe = folder / "recipe.json"
            recipe.write_text(json.dumps({
                "model": {"name": "mlp", "num_classes": 5, "hidden": 7, "layers": 1}, "epochs": 1,
                "data": {"train": {"shards": "unused.tar"}, "image_size": 8}, "output": "unused",
                "optimizer": {"name": "signsgd", "lr": LR, "weight_decay": DECAY,
                              "dead_zone": DEAD_ZONE}}))
            weights, batches = folder / "weights.safetensors", folder / "batches.safetensors"
            self.run_program(program, "init", recipe, weights)
            torch.manual_seed(1)
            inputs, targets = torch.randn(6, 4, 3, 8, 8), torch.randint(5, (6, 4))
            left_out = torch.tensor([0.0, 0, 1, 0, 0, 0])
            save_file({"inputs": inputs, "targets": targets, "found_inf": left_out}, batches)
            ours = [float(line) for line in
                    self.run_program(program, "train", recipe, weights, batches).splitlines()]

            state = {key: value.requires_grad_() for key, value in load_file(weights).items()}
            for step, loss in enumerate(ours):
                hidden = torch.relu(inputs[step].flatten(1) @ state["fc1.weight"].T +
                                    state["fc1.bias"])
                logits = hidden @ state["head.weight"].T + state["head.bias"]
                expected = torch.nn.functional.cross_entropy(logits, targets[step])
                self.assertAlmostEqual(expected.item(), loss, places=5)
                gradients = torch.autograd.grad(expected, list(state.values()))
                if left_out[step]:
                    continue
                with torch.no_grad():
                    for value, gradient in zip(state.values(), gradients):
                        decay = DECAY if value.dim() > 1 else 0
                        moves = gradient.abs() > DEAD_ZONE
                        value -= LR * (gradient.sign() * moves + decay * value)
            self.assertEqual(6, len(ours))


if __name__ == "__main__":
    unittest.main()
