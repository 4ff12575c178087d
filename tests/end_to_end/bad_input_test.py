"""Bad input gives one clear error and the right exit status; no checkpoint is lost."""

import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tarfile
import unittest

from end_to_end import support


def write_shard(path, samples):
    """A shard of (key, image bytes, label text)."""
    with tarfile.open(path, "w") as tar:
        for key, image, label in samples:
            for name, data in ((f"{key}.png", image), (f"{key}.cls", label.encode())):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


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

    def data(self, shard):
        return {"train": {"shards": str(shard)}, "image_size": 16,
                "index_cache": str(self.folder / "index")}

    def test_missing_shard(self):
        path = self.recipe(data=self.data(self.folder / "none-000000.tar"))
        self.assertIn(str(self.folder / "none-000000.tar"), self.launch(path, 65))

    def test_truncated_shard(self):
        shard = self.folder / "cut.tar"
        whole = (support.DIGITS / "train-000000.tar").read_bytes()
        shard.write_bytes(whole[:100 * 512 + 100])
        error = self.launch(self.recipe(data=self.data(shard)), 65)
        self.assertIn("cut.tar", error)

    def test_label_out_of_range(self):
        shard = self.folder / "labels.tar"
        png = a_png()
        write_shard(shard, [(f"{i:05}", png, "12" if i == 40 else "3") for i in range(64)])
        error = self.launch(self.recipe(data=self.data(shard)), 65)
        for word in ("labels.tar", "00040", "12", "0..9"):
            self.assertIn(word, error)

    def test_image_that_does_not_decode(self):
        shard = self.folder / "images.tar"
        png = a_png()
        broken = png[:40] + b"\0\0\0\0" + png[44:]
        write_shard(shard, [(f"{i:05}", broken if i == 40 else png, "3") for i in range(64)])
        error = self.launch(self.recipe(data=self.data(shard)), 65)
        for word in ("images.tar", "00040"):
            self.assertIn(word, error)

    def test_unknown_key_and_wrong_type_are_told_at_once(self):
        path = self.recipe(optimiser={"name": "sgd"}, seed="seven")
        error = self.launch(path, 2)
        self.assertIn('did you mean "optimizer"?', error)
        self.assertIn("/seed", error)
        self.assertFalse((self.folder / "recipe").exists(), "nothing may be started")

    def test_indivisible_batch(self):
        error = self.launch(self.recipe(batch={"global": 100, "per_device": 16}), 2)
        self.assertIn("/batch/global", error)
        self.assertIn("96", error)
        self.assertIn("112", error)

    def test_port_in_use(self):
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            port = holder.getsockname()[1]
            error = self.launch(self.recipe(), 2, "--master-port", port)
        self.assertIn(str(port), error)
        self.assertIn("in use", error.lower())

    def test_output_that_cannot_be_written(self):
        error = self.launch(self.recipe(output="/dev/null/run"), 74)
        self.assertIn("/dev/null/run", error)

    def test_a_checkpoint_with_one_flipped_byte(self):
        path = self.recipe(steps=20, checkpoint={"every": {"steps": 10}})
        self.launch(path, 0)
        checkpoints = self.folder / "recipe/checkpoints"
        model = checkpoints / "step-00000020/model.safetensors"
        data = bytearray(model.read_bytes())
        data[len(data) // 2] ^= 1
        model.write_bytes(data)
        result = self.run_scaletrain("resume", checkpoints / "step-00000020", expect=65)
        self.assertIn("model.safetensors", result.stderr)
        self.run_scaletrain("checkpoint", "verify", self.folder / "recipe", expect=65)
        # The run itself goes on from the one before, and says that one was damaged.
        (self.folder / "recipe/finished.json").unlink()
        result = self.run_scaletrain("launch", "--nproc", 2, "--resume", "auto", path)
        self.assertIn("model.safetensors", result.stderr)
        self.run_scaletrain("checkpoint", "verify", self.folder / "recipe")

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

    def test_a_recipe_that_ends_before_the_checkpoint(self):
        path = self.recipe(steps=8, checkpoint={"every": {"steps": 4}, "async": False})
        self.run_scaletrain("launch", path, env={"SCALETRAIN_FAULT": "kill@6"}, expect=137)
        result = self.run_scaletrain("resume", self.folder / "recipe", "--set", "steps=3",
                                     "--allow", "steps", expect=2)
        self.assertIn("/step: is 4 in a training of 3 steps", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small tmpfs")
    def test_a_disk_that_fills_during_a_checkpoint(self):
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        # 16 x 16 x 3 inputs x 256 hidden: 0.8 MB of model, as much of momentum; room for one.
        path = self.recipe(output=str(disk / "run"), checkpoint={"every": {"steps": 5}},
                           model={"name": "mlp", "num_classes": 10, "hidden": 256, "layers": 1})
        error = self.launch(path, 74)
        self.assertIn(str(disk), error)
        self.assertRegex(error, r"bytes|ENOSPC")
        self.run_scaletrain("checkpoint", "verify", disk / "run")
        self.assertEqual(support.inspect(disk / "run")["step"], 5)
        self.assertEqual(list(disk.glob("run/checkpoints/*.tmp.*")), [])

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

    def test_a_folder_that_has_checkpoints_is_not_trained_over(self):
        path = self.recipe(steps=5)
        self.launch(path, 0)
        self.assertIn("--resume auto", self.launch(path, 2))

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
