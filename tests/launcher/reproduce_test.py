"""scaletrain reproduce: a finished run is trained again, and what differs is named first."""

import json
import os
import pathlib
import subprocess
import unittest

from launcher.launch_support import LaunchTestCase


class Reproduce(LaunchTestCase):
    def setUp(self):
        super().setUp()
        self.run_launcher("data", "synth", "set", "--samples", 64, "--classes", 3, "--size", 32)
        (self.folder / "recipe.json").write_text(json.dumps({
            "name": "shapes", "seed": 3,
            "model": {"name": "mlp", "num_classes": 3, "hidden": 16},
            "data": {"train": {"shards": "set/train-*.tar"}, "image_size": 16},
            "batch": {"per_device": 8}, "epochs": 1, "device": "cpu",
            "optimizer": {"name": "adamw", "lr": 0.001}, "output": "run"}))
        self.run_launcher("launch", "--nproc", 2, "recipe.json")
        self.shard = sorted((self.folder / "set").glob("train-*.tar"))[0]

    def differences(self, expect):
        done = self.run_launcher("reproduce", "run", "--check", "--json", expect=expect)
        return {one["name"]: one for one in json.loads(done.stdout)["differences"]}

    def test_the_same_data_gives_the_same_bits(self):
        self.assertEqual({}, self.differences(expect=0))
        done = self.run_launcher("reproduce", "run", "--output", "again")
        self.assertIn("equal: ", done.stdout)
        self.assertIn("data, program, host and repository are as they were", done.stderr)
        # A second folder of that name is refused, and nothing in it is touched.
        before = (pathlib.Path(self.folder) / "again" / "metrics.jsonl").read_bytes()
        self.run_launcher("reproduce", "run", "--output", "again", expect=2)
        self.assertEqual(before, (self.folder / "again" / "metrics.jsonl").read_bytes())

    def test_a_changed_shard_is_named_before_the_run_and_the_runs_part(self):
        with self.shard.open("ab") as file:
            file.write(bytes(10240))  # zeros behind the end of an archive
        named = f"data train {self.shard}"
        self.assertIn(named, self.differences(expect=1))
        self.run_launcher("data", "synth", "set", "--samples", 64, "--classes", 3, "--size", 32,
                          "--seed", 9, "--overwrite")
        done = self.run_launcher("reproduce", "run", "--output", "again", "--json", expect=1)
        found = json.loads(done.stdout)
        self.assertFalse(found["equal"])
        self.assertIn(found["parting"]["field"], ("loss", "order_digest"))
        self.assertIn(named, [one["name"] for one in found["differences"]])

    def test_a_file_that_was_written_again_is_hashed_where_a_card_has_its_hash(self):
        named = f"data train {self.shard}"
        stat = self.shard.stat()
        os.utime(self.shard, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
        self.assertFalse(self.differences(expect=0)[named]["certain"])
        os.utime(self.shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.run_launcher("data", "card", "set", "--set-name", "shapes")
        self.run_launcher("launch", "--nproc", 1, "recipe.json", "--set", "output=carded")
        os.utime(self.shard, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))
        done = self.run_launcher("reproduce", "carded", "--check", "--json")
        self.assertEqual([], json.loads(done.stdout)["differences"])
        with self.shard.open("r+b") as file:  # the size stays
            file.seek(-1, os.SEEK_END)
            file.write(b"1")
        done = self.run_launcher("reproduce", "carded", "--check", "--json", expect=1)
        self.assertIn("SHA-256 ", json.loads(done.stdout)["differences"][0]["now"])

    def test_changes_of_the_repository_are_recorded_for_the_owner_alone(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
                           cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        git("init", "--quiet")
        (self.folder / "model.txt").write_text("old\n")
        git("add", "model.txt")
        git("commit", "--quiet", "-m", "first")
        (self.folder / "model.txt").write_text("new\n")
        self.run_launcher("launch", "--nproc", 1, "recipe.json", "--set", "output=changed")
        diff = self.folder / "changed" / "changes.diff"
        self.assertIn("+new", diff.read_text())
        self.assertEqual(0o600, diff.stat().st_mode & 0o777)
        done = self.run_launcher("reproduce", "changed", "--check", "--json")
        self.assertEqual([], json.loads(done.stdout)["differences"])
        (self.folder / "model.txt").write_text("newer\n")
        done = self.run_launcher("reproduce", "changed", "--check", expect=1)
        self.assertIn("uncommitted changes", done.stdout)

    def test_a_run_that_is_not_finished_is_refused(self):
        (self.folder / "run" / "finished.json").unlink()
        done = self.run_launcher("reproduce", "run", expect=2)
        self.assertIn("not finished", done.stderr)


if __name__ == "__main__":
    unittest.main()
