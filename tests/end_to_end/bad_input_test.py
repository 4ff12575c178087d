"""A checkpoint or recipe that makes no sense, too few images, a full disk: one clear error and the right
exit status, and no checkpoint is lost."""

import json
import os
import subprocess
import tarfile
import unittest

from end_to_end import support


def a_png():
    with tarfile.open(support.DIGITS / "val-000000.tar") as tar:
        member = next(m for m in tar if m.name.endswith(".png"))
        return tar.extractfile(member).read()


class BadInputTest(support.RunTestCase):
    def launch(self, path, expect, *flags):
        result = self.run_scaletrain("launch", "--nproc", 2, *flags, path, expect=expect, timeout=60)
        self.assertNotIn("Traceback", result.stderr)
        self.assertNotIn("terminate called", result.stderr)
        return result.stderr

    def test_a_checkpoint_that_makes_no_sense_is_passed_over(self):
        path = self.recipe(steps=20, checkpoint={"every": {"steps": 10}})
        self.launch(path, 0)
        newest = self.folder / "recipe/checkpoints/step-00000020"
        state = json.loads((newest / "state.json").read_text())
        state["skipped_steps"] = 21
        (newest / "state.json").write_text(json.dumps(state))
        support.seal(newest)
        result = self.run_scaletrain("resume", "--nproc", 2, newest, expect=65)
        self.assertIn("/skipped_steps: is 21 of 20 steps", result.stderr)
        (self.folder / "recipe/finished.json").unlink()
        result = self.run_scaletrain("launch", "--nproc", 2, "--resume", "auto", path)
        self.assertIn("/skipped_steps: is 21", result.stderr)
        self.assertIn("continuing from", result.stderr)
        self.run_scaletrain("checkpoint", "verify", self.folder / "recipe")

    def test_a_damaged_recipe_of_a_checkpoint_is_told_by_its_checksums(self):
        path = self.recipe(steps=5)
        self.launch(path, 0)
        checkpoint = self.folder / "recipe/checkpoints/step-00000005"
        recipe = checkpoint / "recipe.json"
        recipe.write_bytes(recipe.read_bytes().replace(b"name", b"nome", 1))
        error = self.run_scaletrain("checkpoint", "verify", checkpoint, expect=65).stdout.strip()
        said = error.splitlines()[-1].strip()
        self.assertRegex(said, "has the XXH3-128 [0-9a-f]{32}, its manifest says [0-9a-f]{32}")
        for arguments in (["resume", checkpoint],
                          ["launch", "--resume", checkpoint, "--set", "output=other", path]):
            self.assertIn(said, self.run_scaletrain(*arguments, expect=65).stderr)

    def test_what_only_a_worker_knows_is_refused_as_by_check_and_leaves_no_folder(self):
        path = self.recipe("refused", model={"name": "mlp", "num_classes": 10, "freeze": ["nothing.*"]})
        checked = self.run_scaletrain("recipe", "check", path, "--worker", expect=2).stderr
        self.assertIn('/model/freeze: no parameter matches "nothing.*"', checked)
        self.assertIn(checked, self.launch(path, 2))
        self.assertFalse((self.folder / "refused").exists())

    def test_a_recipe_that_ends_before_the_checkpoint(self):
        path = self.recipe(steps=8, checkpoint={"every": {"steps": 4}, "async": False})
        self.run_scaletrain("launch", path, env={"SCALETRAIN_FAULT": "kill@6"}, expect=137)
        result = self.run_scaletrain("resume", self.folder / "recipe", "--set", "steps=3",
                                     "--allow", "steps", expect=2)
        self.assertIn("/step: is 4 in a training of 3 steps", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small tmpfs")
    def test_a_disk_that_is_full_to_the_last_byte_keeps_no_cause_from_the_console(self):
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        process = self.start("launch", "--nproc", 2, self.recipe(
            steps=200, output=str(disk / "run"), checkpoint={"every": {"steps": 20}}),
            env={"SCALETRAIN_FAULT": "slows@1"})
        support.wait_until(lambda: (disk / "run/checkpoints/step-00000020").exists(), "a checkpoint")
        with self.assertRaises(OSError), open(disk / "filler", "wb", buffering=0) as filler:
            for size in (65536, 1):  # what is left of a page too
                try:
                    while filler.write(bytes(size)) == size:
                        pass
                except OSError:
                    if size == 1:
                        raise
        _, error = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(74, process.returncode, error)
        self.assertIn(f"cause: {disk}/run/checkpoints: the checkpoint of step ", error)
        self.assertRegex(error, r"needs \d+ bytes, 0 are free")
        self.assert_nothing_left(process)

    def test_an_empty_folder_and_too_few_samples(self):
        classes = self.folder / "images"
        for label in ("a", "b"):
            (classes / label).mkdir(parents=True)
        data = {"train": {"folder": str(classes)}, "image_size": 16}
        self.assertIn(str(classes), self.launch(self.recipe(data=data), 65))
        for name in ("a/0", "a/1", "a/2", "a/3", "b/0"):
            (classes / f"{name}.png").write_bytes(a_png())
        error = self.launch(self.recipe(data=data), 2)
        self.assertIn("/batch", error)
        self.assertIn("5", error)


if __name__ == "__main__":
    unittest.main()
