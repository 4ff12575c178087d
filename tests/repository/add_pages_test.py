"""The pages on adding a model, a task, an optimizer and a key are followed: their rows and files are built.
Models are trained by the task, and what was measured is computed again; the optimizer's steps are checked
against its formula; the key is read, refused and explained."""
import io
import json
import shutil
import struct
import sys
import tarfile
import unittest

import page
import tracked

STEPS = 60
LR, DECAY, DEAD_ZONE = 0.01, 0.1, 0.002

# Reads the section that the argument is, and prints it with the help of its last key, or what is wrong.
READS_KEY = r"""
#include <cstdio>

#include "lib/core/error.h"
#include "lib/recipe/schema/json_text.h"
#include "lib/recipe/schema/object.h"

int main(int, char** words) {
  namespace recipe = scaletrain::recipe;
  try {
    std::optional<recipe::Clip> clip;
    const recipe::TypePtr type = recipe::describe(clip);
    const auto source = std::make_shared<recipe::SourceText>();
    recipe::Problems problems;
    type->read(recipe::parse_json_text(words[1], source), "/clip", problems);
    problems.throw_if_any();
    const recipe::Field& last = type->object()->fields().back();
    std::printf("%s\n%s: %s\n", type->write().dump().c_str(), last.name.c_str(), last.help.c_str());
    return clip->skip_above ? 0 : 3;
  } catch (const scaletrain::core::Error& error) {
    std::puts(error.what());
    return static_cast<int>(error.exit_code());
  }
}
"""


def tensor_names(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return sorted(set(json.loads(data[8:8 + size])) - {"__metadata__"})


@unittest.skipUnless((page.PROGRAMS / "scaletrain-worker").exists(), "built without LibTorch")
class AddPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Not a new name each time, which the compiler cache would not know.
        cls.folder = page.PROGRAMS.resolve().parent / "add_pages"
        shutil.rmtree(cls.folder, ignore_errors=True)
        cls.folder.mkdir()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.parity_program, cls.scaletrain, _ = page.programs(
            cls(), cls.folder, ["parity_program", "scaletrain", "scaletrain-worker"])

    def run_program(self, *words, expect=0):
        done = page.run(*words, cwd=self.folder)
        self.assertEqual(expect, done.returncode, done.stderr)
        return done.stdout + done.stderr

    def recipe(self, name, **keys):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(keys | {"output": name}))
        return path

    def init(self, expect=0, **keys):
        """The file that the initial model is written to, and the output."""
        out = self.folder / "out.safetensors"
        recipe = self.recipe("model", model={"name": "logistic", "num_classes": 10, **keys}, epochs=1,
                             data={"train": {"shards": "unused.tar"}, "image_size": 8},
                             optimizer={"name": "sgd", "lr": 0.1})
        return out, self.run_program(self.parity_program, "init", recipe, out, expect=expect)

    def test_the_model(self):
        out, _ = self.init()
        self.assertEqual(["layer.bias", "layer.weight"], tensor_names(out))
        out, _ = self.init(bias=False)
        self.assertEqual(["layer.weight"], tensor_names(out))
        _, said = self.init(bais=False, expect=2)
        self.assertIn("/model/bais", said)
        self.assertIn('did you mean "bias"?', said)

    def rotations(self, name, num_classes=4, **changes):
        """A recipe of the task."""
        return self.recipe(name, **{
            "task": "rotation", "steps": STEPS, "batch": {"per_device": 16}, "device": "cpu",
            "model": {"name": "mlp", "num_classes": num_classes, "hidden": 32, "layers": 1},
            "data": {"train": {"shards": "digits/train-{000000..000003}.tar"},
                     "val": {"shards": "digits/val-000000.tar"}, "image_size": 8},  # their own
            "optimizer": {"name": "adamw", "lr": 0.003}, **changes})

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

    def test_the_task(self):
        self.run_program(sys.executable, tracked.ROOT / "scripts/make_digits.py", "digits")
        said = self.run_program(self.scaletrain, "launch", "--nproc", 2, self.rotations("run"))
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
        self.assertEqual(max(record["accuracy"] for record in records if record["event"] == "eval"),
                         state["best_metric"])

        said = self.run_program(self.scaletrain, "launch", self.rotations("wrong", num_classes=10),
                                expect=2)
        self.assertIn("/model/num_classes: is not the number of rotations", said)
        said = self.run_program(self.scaletrain, "recipe", "check", self.rotations(
            "top", checkpoint={"best": "top1"}), expect=2)
        self.assertIn("rotation does not measure top1", said)

    def test_the_key(self):
        program = page.program_with_key(self, self.folder / "key", READS_KEY)
        said = self.run_program(program, '{"norm": 1, "skip_above": 100}')
        self.assertIn('"skip_above":100', said)
        self.assertIn("skip_above: Gradient norm above which an optimizer step is skipped, for example 100.",
                      said)
        self.run_program(program, '{"norm": 1}', expect=3)
        said = self.run_program(program, '{"norm": 1, "skip_above": 0}', expect=2)
        self.assertIn("/clip/skip_above: 0 is out of range", said)
        self.assertIn("a number above 0 and at most 1000000", said)
        said = self.run_program(program, '{"norm": 1, "skip_abov": 5}', expect=2)
        self.assertIn('did you mean "skip_above"?', said)

    def test_the_optimizer(self):
        import torch
        from safetensors.torch import load_file, save_file

        recipe = self.recipe("optimizer", epochs=1, model={
            "name": "mlp", "num_classes": 5, "hidden": 7, "layers": 1}, optimizer={
                "name": "signsgd", "lr": LR, "weight_decay": DECAY, "dead_zone": DEAD_ZONE},
                             data={"train": {"shards": "unused.tar"}, "image_size": 8})
        weights, batches = self.folder / "weights.safetensors", self.folder / "batches.safetensors"
        self.run_program(self.parity_program, "init", recipe, weights)
        torch.manual_seed(1)
        inputs, targets = torch.randn(6, 4, 3, 8, 8), torch.randint(5, (6, 4))
        left_out = torch.tensor([0.0, 0, 1, 0, 0, 0])
        save_file({"inputs": inputs, "targets": targets, "found_inf": left_out}, batches)
        ours = list(map(float, self.run_program(
            self.parity_program, "train", recipe, weights, batches).splitlines()))

        state = {key: value.requires_grad_() for key, value in load_file(weights).items()}
        for step, loss in enumerate(ours):
            hidden = torch.relu(inputs[step].flatten(1) @ state["fc1.weight"].T + state["fc1.bias"])
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
