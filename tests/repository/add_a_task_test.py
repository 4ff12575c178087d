"""docs/add-a-task.md is followed: its row and its file make a task, by which a model is trained; what was
measured is computed again."""
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

import page
import tracked

STEPS = 60


class AddATask(unittest.TestCase):
    def run_program(self, *arguments, expect=0):
        done = subprocess.run(list(map(str, arguments)), timeout=page.LIMIT_S, capture_output=True,
                              text=True, cwd=self.folder)
        self.assertEqual(expect, done.returncode, done.stderr)
        return done.stdout + done.stderr

    def recipe(self, name, num_classes=4, **changes):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({
            "task": "rotation", "steps": STEPS, "batch": {"per_device": 16}, "device": "cpu",
            "model": {"name": "mlp", "num_classes": num_classes, "hidden": 32, "layers": 1},
            "data": {"train": {"shards": "digits/train-{000000..000003}.tar"},
                     "val": {"shards": "digits/val-000000.tar"}, "image_size": 8},  # their own
            "optimizer": {"name": "adamw", "lr": 0.003}, "output": name, **changes}))
        return path

    def measured_again(self, run):
        """(accuracy, loss) of the newest checkpoint over all rotations of data.val."""
        import torch
        from PIL import Image
        from safetensors.torch import load_file

        state = load_file(run / "checkpoints/latest/model.safetensors")
        normalize = json.loads((run / "recipe.json").read_text())["data"]["normalize"]
        mean, std = (torch.tensor(normalize[key]).view(3, 1, 1) for key in ("mean", "std"))
        images = []
        with tarfile.open(self.folder / "digits/val-000000.tar") as tar:
            for member in tar:
                if not member.name.endswith(".png"):
                    continue
                image = Image.open(io.BytesIO(tar.extractfile(member).read())).convert("RGB")
                pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
                pixels = pixels.view(image.height, image.width, 3).permute(2, 0, 1)
                images.append((pixels / 255 - mean) / std)
        hits = loss = 0
        for turns in range(4):
            turned = torch.stack([torch.rot90(image, turns, (1, 2)) for image in images])
            hidden = torch.relu(turned.flatten(1) @ state["fc1.weight"].T + state["fc1.bias"])
            logits = hidden @ state["head.weight"].T + state["head.bias"]
            targets = torch.full((len(images),), turns)
            hits += (logits.argmax(1) == targets).sum().item()
            loss += torch.nn.functional.cross_entropy(logits, targets, reduction="sum").item()
        return hits / 4 / len(images), loss / 4 / len(images)

    def test_the_page_makes_a_task(self):
        if not (page.PROGRAMS / "scaletrain-worker").exists():
            self.skipTest("built without LibTorch")
        with tempfile.TemporaryDirectory() as name:
            self.folder = pathlib.Path(name)
            scaletrain, _ = page.Page(
                "docs/add-a-task.md", "lib/recipe/tasks.def", "lib/task/tasks.cpp",
                "lib/recipe/task.cpp").programs(self, self.folder, ["scaletrain", "scaletrain-worker"])
            self.run_program(sys.executable, tracked.ROOT / "scripts/make_digits.py", "digits")

            said = self.run_program(scaletrain, "launch", "--nproc", 2, self.recipe("run"))
            run = self.folder / "run"
            records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            last = [record for record in records if record["event"] == "eval"][-1]
            self.assertEqual((STEPS, 4 * 200), (last["step"], last["count"]))
            accuracy, loss = self.measured_again(run)
            self.assertAlmostEqual(accuracy, last["accuracy"], places=2)
            self.assertAlmostEqual(loss, last["loss"], places=4)
            self.assertGreater(last["accuracy"], 0.6)  # by chance: 0.25
            self.assertIn("800 rotations", said)
            state = json.loads((run / "checkpoints/best/state.json").read_text())
            self.assertEqual(max(record["accuracy"] for record in records
                                 if record["event"] == "eval"), state["best_metric"])

            said = self.run_program(scaletrain, "launch", self.recipe("wrong", num_classes=10), expect=2)
            self.assertIn("/model/num_classes: is not the number of rotations", said)
            said = self.run_program(scaletrain, "recipe", "check", self.recipe(
                "top", checkpoint={"best": "top1"}), expect=2)
            self.assertIn("rotation does not measure top1", said)


if __name__ == "__main__":
    unittest.main()
