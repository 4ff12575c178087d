"""Random recipes: what `recipe check` accepts trains to the end, on each layout to the losses of one
rank, and goes on from a checkpoint bit for bit.

SCALETRAIN_SEEDS="17 40-59" runs these seeds alone."""

import hashlib
import json
import math
import os
import re
import unittest

from end_to_end import random_recipes, support
from end_to_end.random_recipes import CUT, STEPS

# Each model of MODELS with another number of ranks; seeds 19, 39, ... have large models.
FEW_SEEDS = range(10)
MANY_SEEDS = range(200)
MOST_DRAFTS = 200
SAME = 1e-5  # of the losses of two layouts
EXACT_PRECISIONS = ("fp32", "fp64", "tf32")  # tf32 is fp32 on a CPU


def seeds(few, many):
    """The seeds of this run: `few` in the short form, `many` in the long one."""
    if asked := os.environ.get("SCALETRAIN_SEEDS"):
        ranges = [word.partition("-") for word in asked.split()]
        return [seed for first, _, last in ranges for seed in range(int(first), int(last or first) + 1)]
    return many if support.LONG else few


def inexact(draft):
    """Why a layout and one rank differ by more than the order of sums; None if they do not."""
    recipe, parallel = draft.recipe, draft.parallel
    if recipe["precision"] not in EXACT_PRECISIONS:
        return "rounded products"
    for key in ("compress", "sync", "mix"):
        if key in recipe:
            return key
    if "types" in parallel:
        return "rounded communication"
    model = draft.model
    if model["name"] in ("resnet18", "mobilenet_v3_small") and model.get("norm") != "group":
        return "BatchNorm of each rank's micro-batch"
    if "tensor" in parallel and model.get("dropout"):
        return "divided activations have masks of their own"
    return None


class RandomRecipesTest(support.RunTestCase):
    def setUp(self):
        super().setUp()
        random_recipes.write_tokens(self.folder)

    def accepted(self, seed):
        """The first draft of a seed that `recipe check` accepts. A draft that it refuses, it refuses
        with a reason. A worker is asked where names of parameters or layers decide."""
        for number in range(MOST_DRAFTS):
            draft = random_recipes.draft(seed, number)
            path = draft.complete(self.folder, f"seed-{seed}")
            flags = ["--worker"] if draft.needs_worker() else []
            process = self.start("recipe", "check", path, "--nproc", draft.ranks, *flags)
            _, err = process.communicate(timeout=support.TIMEOUT_S)
            if process.returncode == 0:
                return draft, path
            self.assertEqual(2, process.returncode, f"{path.read_text()}\n{err}")
            self.assertIn(": /", err)
        raise AssertionError(f"seed {seed}: {MOST_DRAFTS} drafts were refused")

    def launch(self, path, ranks, *flags):
        process = self.start("launch", "--nproc", ranks, *flags, path)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(0, process.returncode, f"{ranks} ranks, {flags}\n{path.read_text()}\n{err}")

    def state_of(self, run):
        """The tensors of a run's last checkpoint: {(kind, name): digests of its pieces}. Which file
        has a piece may differ, since an incremental checkpoint links those that have not changed."""
        folder = self.folder / run / "checkpoints/latest"
        self.assertEqual(STEPS, json.loads((folder / "state.json").read_text())["step"])
        found = {}
        for file in sorted(folder.glob("*.safetensors")):
            kind = re.sub(r"(-\d+-of-\d+)?(-kept-\d+)?\.safetensors$", "", file.name)
            data = file.read_bytes()
            first = 8 + int.from_bytes(data[:8], "little")
            for name, tensor in json.loads(data[8:first]).items():
                if name != "__metadata__":
                    begin, end = (first + offset for offset in tensor["data_offsets"])
                    piece = f"{tensor['dtype']} {tensor['shape']} {hashlib.sha256(data[begin:end]).hexdigest()}"
                    found.setdefault(f"{kind}: {name}", []).append(piece)
        self.assertTrue(found)
        return {name: sorted(pieces) for name, pieces in found.items()}

    def losses(self, run, event):
        return {(record.get("split"), record["step"]): record["loss"]
                for record in support.records(self.folder / run, event)}

    def check_resume(self, name, draft):
        checkpoint = self.folder / name / f"checkpoints/step-{CUT:08}"
        self.run_scaletrain("checkpoint", "verify", checkpoint)
        resumed = f"{name}-resumed"
        self.launch(draft.complete(self.folder, resumed), draft.ranks, "--resume", checkpoint)
        self.assertEqual(self.state_of(name), self.state_of(resumed))
        for event in ("train", "eval"):
            later = {key: loss for key, loss in self.losses(name, event).items() if key[1] > CUT}
            self.assertEqual(later, self.losses(resumed, event))

    def check_one_rank(self, name, draft):
        alone = f"{name}-alone"
        self.launch(draft.complete(self.folder, alone, parallel=None, dist=None), 1)
        for event in ("train", "eval"):
            expected, found = self.losses(alone, event), self.losses(name, event)
            self.assertEqual(expected.keys(), found.keys())
            for key, loss in found.items():
                self.assertAlmostEqual(expected[key], loss, delta=SAME * abs(expected[key]),
                                       msg=f"{event} at {key}")

    def check_seed(self, seed):
        draft, path = self.accepted(seed)
        name = path.stem
        self.launch(path, draft.ranks)
        losses = self.losses(name, "train")
        self.assertEqual(STEPS, len(losses))
        self.assertTrue(all(map(math.isfinite, losses.values())), losses)
        # Asynchronous replicas average when each is ready, which is never the same twice.
        if draft.recipe.get("sync", {}).get("name") != "async":
            self.check_resume(name, draft)
        if draft.ranks > 1 and inexact(draft) is None:
            self.check_one_rank(name, draft)

    def test_what_is_accepted_trains_resumes_and_agrees_with_one_rank(self):
        for seed in seeds(FEW_SEEDS, MANY_SEEDS):
            with self.subTest(seed=seed):
                self.check_seed(seed)


if __name__ == "__main__":
    unittest.main()
