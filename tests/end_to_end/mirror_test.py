"""Checkpoints in a second folder: what a resume takes where the run's own are lost or damaged."""
import shutil
import unittest

from end_to_end import support


class MirrorTest(support.RunTestCase):
    def setUp(self):
        super().setUp()
        self.copies = self.folder / "copies"
        self.output = self.folder / "run"
        self.path = self.recipe("run", steps=10, data={
            "train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
            "image_size": 16, "index_cache": str(self.folder / "index")},
            checkpoint={"every": {"steps": 5}, "mirror": str(self.copies)})

    def launch(self, *more, expect=0):
        return self.run_scaletrain("launch", "--nproc", 1, *more, self.path, expect=expect).stderr

    def go_on(self, steps):
        return self.launch("--resume", "auto", "--allow", "steps", "--set", f"steps={steps}")

    def test_damaged_checkpoints_come_back_from_the_copies(self):
        self.launch()
        digest = support.inspect(self.copies)["model_digest"]
        self.assertEqual(digest, support.inspect(self.output)["model_digest"])
        for path in self.output.glob("checkpoints/step-*"):
            (path / "model.safetensors").write_bytes(b"damage")
        error = self.go_on(12)
        self.assertIn("none of its checkpoints is whole, so step-00000010 was copied from "
                      f"{self.copies}", error)
        self.run_scaletrain("checkpoint", "verify", self.copies / "checkpoints/step-00000012")

    def test_the_newest_is_taken_wherever_it_is(self):
        self.launch()
        shutil.rmtree(self.output / "checkpoints/step-00000010")
        error = self.go_on(12)
        self.assertIn("its newest checkpoint is of step 5, so step-00000010 was copied from", error)
        shutil.rmtree(self.copies / "checkpoints/step-00000012")
        error = self.go_on(14)
        self.assertIn(f"continuing from {self.output}/checkpoints/step-00000012", error)
        self.assertNotIn("was copied from", error)
        self.run_scaletrain("checkpoint", "verify", self.copies / "checkpoints/step-00000014")

    def test_copies_of_another_run_are_not_mixed_in(self):
        self.launch()
        shutil.rmtree(self.output)
        error = self.launch(expect=2)
        self.assertIn(f"{self.copies}: holds checkpoints of an earlier run", error)
        for _ in ("the first", "another"):
            error = self.launch("--resume", "auto", "--set", "optimizer.lr=0.01", expect=2)
            self.assertIn("the recipe differs from the run that is continued: optimizer.lr", error)
            self.assertEqual([], list(self.output.glob("checkpoints/*")))
        error = self.launch("--resume", "auto", "--set", "checkpoint.mirror=null")
        self.assertIn("no checkpoint yet, starting from the beginning", error)

    def test_copies_are_listed_and_brought_back_by_hand(self):
        self.launch()
        out = self.run_scaletrain("data", "mirror", self.copies).stdout
        self.assertEqual(f"        10  {self.copies}/checkpoints/step-00000010",
                         out.splitlines()[0])
        out = self.run_scaletrain("data", "mirror", self.copies, "--to", self.folder / "new").stdout
        self.assertEqual(f"{self.folder}/new/checkpoints/step-00000010\n", out)
        error = self.run_scaletrain("data", "mirror", self.copies, "--to", self.folder / "new",
                                    "--newer-than", 10, expect=65).stderr
        self.assertIn(f"{self.copies}: has no complete checkpoint that is newer than step 10", error)
        error = self.run_scaletrain("data", "mirror", self.folder / "absent", expect=65).stderr
        self.assertIn("has no checkpoint", error)


if __name__ == "__main__":
    unittest.main()
