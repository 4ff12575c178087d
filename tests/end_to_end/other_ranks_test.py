"""Ranks of one job that were given different things, by a worker program that gives them."""

import json
import shutil
import unittest

from end_to_end import support

WORKER = support.BIN / "scaletrain-worker"


class OtherRanksTest(support.RunTestCase):
    def worker(self, rank_1):
        """A worker program that for rank 1 runs `rank_1` with our arguments in "$@"."""
        script = self.folder / "worker"
        script.write_text(f"#!/bin/sh\n[ $RANK = 1 ] || exec {WORKER} \"$@\"\n{rank_1}\n")
        script.chmod(0o755)
        return script

    def check_refused(self, rank_1, expect, found):
        """Both ranks end with `expect`; the difference of rank 1 is named once. A wrong recipe leaves no run."""
        result = self.run_scaletrain(
            "launch", "--nproc", 2, "--max-restarts", 3, "--worker", self.worker(rank_1),
            self.recipe(), expect=expect)
        if expect == 2:
            self.assertRegex(result.stderr, rf"^rank 1 on host \S+: {found}\n")
            self.assertFalse((self.folder / "recipe").exists())
            return
        self.assertRegex(result.stderr, rf"rank [01] failed first: exit code {expect} ")
        self.assertRegex(result.stderr, rf"cause: rank 1 on host \S+: {found}\n")
        self.assertEqual([], list((self.folder / "recipe").glob("logs/attempt_1")))
        shutil.rmtree(self.folder / "recipe")

    def other_recipe(self, **changes):
        """Rank 1's command with a recipe of its own."""
        path = self.recipe(**changes).rename(self.folder / "other.json")
        return f"exec {WORKER} train --recipe {path}"

    def test_the_first_key_of_the_recipe_that_differs_is_told(self):
        self.check_refused(self.other_recipe(optimizer={"name": "sgd", "lr": 0.5}), 2,
                           r"optimizer.lr of the recipe is 0.5; on rank 0 \(host \S+\) it is 0.05")
        self.check_refused(
            self.other_recipe(seed=8, model={"name": "resnet18", "num_classes": 10}), 2,
            r"model.dropout of the recipe is unset; on rank 0 \(host \S+\) it is 0.0")

    def test_other_tars_under_the_same_names_are_told(self):
        copy = self.folder / "copy"
        copy.mkdir()
        for path in support.DIGITS.iterdir():
            if path.suffix in (".tar", ".json"):
                shutil.copy(path, copy)
        data = json.loads(self.recipe().read_text())["data"]
        for split in ("train", "val", "test"):
            data[split]["shards"] = data[split]["shards"].replace(str(support.DIGITS), str(copy))
        data["index_cache"] = str(self.folder / "index-of-copy")
        same = self.other_recipe(data=data)
        self.run_scaletrain("launch", "--nproc", 2, "--worker", self.worker(same), self.recipe())
        shutil.rmtree(self.folder / "recipe")

        shutil.copy(copy / "val-000000.tar", copy / "test-000000.tar")
        self.check_refused(same, 65, r"the number of samples of data.test is 200; "
                                     r"on rank 0 \(host \S+\) it is 197")
        shutil.move(copy / "train-000000.tar", copy / "swapped")
        shutil.move(copy / "train-000001.tar", copy / "train-000000.tar")
        shutil.move(copy / "swapped", copy / "train-000001.tar")
        self.check_refused(same, 65, r"the digest of data.train \(names, labels and sizes\) is "
                                     r"\w{16}; on rank 0 \(host \S+\) it is \w{16}")

    def test_only_rank_0_needs_the_checkpoint(self):
        changes = {"steps": 8, "checkpoint": {"every": {"steps": 4}, "async": False}}
        alone = self.recipe("alone", **changes)
        self.run_scaletrain("launch", "--nproc", 2, alone)
        path = self.recipe(**changes)
        self.run_scaletrain("launch", "--nproc", 2, path, env={"SCALETRAIN_FAULT": "kill@6"},
                            expect=137)
        # --recipe PATH --resume CHECKPOINT, of which rank 1 has a folder that is not there.
        elsewhere = self.worker(
            f'exec {WORKER} train --recipe "$3" --resume "/nowhere/$(basename "$5")"')
        self.run_scaletrain("launch", "--nproc", 2, "--worker", elsewhere, "--resume", "auto", path)
        digests = [support.inspect(self.folder / name)["model_digest"]
                   for name in ("alone", "recipe")]
        self.assertEqual(digests[0], digests[1])

    def test_a_rank_that_resumes_nothing_is_told(self):
        changes = {"steps": 8, "checkpoint": {"every": {"steps": 4}, "async": False}}
        path = self.recipe(**changes)
        self.run_scaletrain("launch", "--nproc", 2, path, env={"SCALETRAIN_FAULT": "kill@6"},
                            expect=137)
        result = self.run_scaletrain(
            "launch", "--nproc", 2, "--worker", self.worker(f'exec {WORKER} train --recipe "$3"'),
            "--resume", "auto", path, expect=2)
        self.assertRegex(result.stderr, r"rank 1 on host \S+: the checkpoint to resume from is none; "
                                        r"on rank 0 \(host \S+\) it is step-00000004\n")


if __name__ == "__main__":
    unittest.main()
