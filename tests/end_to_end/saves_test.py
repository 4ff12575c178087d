"""Checkpoints beside training: asked for by a person, kept and removed by what was asked."""

import json
import random
import shutil
import signal
import subprocess
import time
import unittest

from end_to_end import support


def steps_of(run):
    return sorted(int(path.name.split("-")[1]) for path in (run / "checkpoints").glob("step-*")
                  if ".tmp" not in path.name)


class SavesTest(support.RunTestCase):
    def test_a_running_run_is_asked_for_a_checkpoint_and_goes_on(self):
        """What docs/reference/checkpoints.md shows:

        scaletrain checkpoint now runs/kept
        """
        run = self.folder / "run"
        # What nobody reads of the console is dropped where a pipe is full: few lines.
        path = self.recipe("run", steps=1000000, checkpoint={"every": {"steps": 900000}},
                           validate={"every": {"steps": 900000}}, log={"every": {"steps": 100}})
        process = self.start("launch", "--nproc", 2, path)
        support.wait_until(lambda: (run / "metrics.jsonl").exists() and
                           support.records(run, "train"), "the first step")
        out = self.run_scaletrain("checkpoint", "now", run).stdout
        self.assertIn("asked for a checkpoint", out)
        support.wait_until(lambda: support.records(run, "checkpoint"), "a checkpoint")
        [saved] = support.records(run, "checkpoint")
        self.assertEqual([saved["step"]], steps_of(run))
        self.assertGreater(saved["bytes"], 1000)
        self.assertGreater(saved["write_time"], 0)
        self.assertFalse((run / "control/checkpoint").exists())
        support.wait_until(lambda: support.records(run, "train")[-1]["step"] > saved["step"] + 20,
                           "the steps behind it")
        err = self.run_scaletrain("checkpoint", "prune", run, expect=2).stderr
        self.assertIn("the run is still running", err)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(75, process.returncode, err)
        self.assertIn(f"saved {run.relative_to(self.folder)}/checkpoints/step-{saved['step']:08}", err)
        self.assertEqual(2, len(steps_of(run)))
        err = self.run_scaletrain("checkpoint", "now", run, expect=2).stderr
        self.assertIn("no run is running in this folder", err)

    def test_what_is_kept_is_listed_and_what_is_not_is_removed(self):
        run = self.folder / "kept"
        path = self.recipe("kept", data=self.data(), steps=10,
                           checkpoint={"every": {"steps": 1}, "keep_last": 2, "keep_best": 0,
                                       "keep_every": {"steps": 4}})
        self.run_scaletrain("launch", "--nproc", 1, path)
        self.assertEqual([1, 5, 9, 10], steps_of(run))
        listed = json.loads(self.run_scaletrain("checkpoint", "ls", run, "--json").stdout)
        self.assertEqual([[1, "every"], [5, "every"], [9, "last"], [10, "newest"]],
                         [[one["step"], one["kept"]] for one in listed["checkpoints"]])
        self.assertEqual([], listed["unread"])
        text = self.run_scaletrain("checkpoint", "ls", run, "--keep-last", 1,
                                   "--keep-every-steps", 9).stdout
        self.assertEqual(["every", "longer", "newest"],
                         [line.split()[-1] for line in text.splitlines()[1:] if "9 " not in line])
        asked = ("checkpoint", "prune", run, "--keep-last", 1, "--keep-every-steps", 8)
        out = self.run_scaletrain(*asked, "--dry-run").stdout
        self.assertIn("step 5\n1 checkpoints would be removed", out)
        self.assertEqual([1, 5, 9, 10], steps_of(run))
        self.run_scaletrain(*asked)
        self.assertEqual([1, 9, 10], steps_of(run))
        (run / "checkpoints/step-00000001/state.json").write_text("{")
        done = json.loads(self.run_scaletrain(*asked, "--keep-hours", 1, "--json").stdout)
        self.assertEqual({"removed": [], "bytes": 0, "dry_run": False}, done)
        self.assertIn("step 1 cannot be read, and is kept",
                      self.run_scaletrain("checkpoint", "ls", run).stdout)

    def test_killed_at_any_system_call_of_its_saves_a_run_goes_on_to_the_same_bits(self):
        self.sweep(ranks=1, every=8)

    def test_killed_at_any_system_call_of_saves_in_pieces_a_run_goes_on_to_the_same_bits(self):
        self.sweep(ranks=4 if support.LONG else 2, every=8)

    def test_killed_at_any_system_call_of_incremental_saves_a_run_goes_on_to_the_same_bits(self):
        # The first layer, 18 MB, is frozen: from the third save on it is linked.
        self.sweep(ranks=1, every=19, steps=8, model={"freeze": "fc1.*"},
                   checkpoint={"incremental": True})

    def sweep(self, ranks, every, steps=6, model=None, checkpoint=None):
        """SIGKILL at the N-th call of any process and thread, N sweeping until none is reached: each
        N in the long form."""
        # 18 MB of weights: files that are written past the page cache.
        changes = {"data": self.data(), "steps": steps, "batch": {"global": 16, "per_device": 4},
                   "model": {"name": "mlp", "num_classes": 10, "hidden": 6000, "layers": 1,
                             **(model or {})},
                   "checkpoint": {"every": {"steps": 2}, "keep_last": 1,
                                  "writers": "all" if ranks > 1 else "rank_0",
                                  **(checkpoint or {})}}
        self.run_scaletrain("launch", "--nproc", ranks, self.recipe("alone", **changes))
        digest = support.inspect(self.folder / "alone")["model_digest"]
        calls = "fsync,rename,mkdir,symlink,link,unlink,unlinkat,rmdir,fallocate,pwrite64"
        killed = 0
        for number in range(1, 1000, 1 if support.LONG else every):
            path = self.recipe(f"run{number}", **changes)
            command = ["strace", "-f", "-qq", "-o", "/dev/null",
                       "-e", f"trace={calls}", "-e", f"inject={calls}:signal=KILL:when={number}",
                       str(support.SCALETRAIN), "launch", "--nproc", str(ranks), str(path)]
            result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                                    timeout=support.TIMEOUT_S)
            run = self.folder / f"run{number}"
            for line in result.stderr.splitlines():
                if not line.startswith("saved "):
                    continue
                # The last one that was reported is there, or a later one.
                step = int(line.split("step-")[1].split()[0])
                self.assertGreaterEqual(max(steps_of(run)), step)
            if (run / "checkpoints").exists() and steps_of(run):
                self.run_scaletrain("checkpoint", "verify", run)
            if result.returncode != 0:
                self.run_scaletrain("launch", "--nproc", ranks, "--resume", "auto", path)
            self.assertEqual(digest, support.inspect(run)["model_digest"], number)
            shutil.rmtree(run)
            if result.returncode == 0:
                break
            killed += 1
        print(f"{ranks} ranks killed at {killed} calls")
        self.assertEqual(0, result.returncode, "some call was still reached")
        self.assertGreater(killed, 2)

    def test_killed_at_random_moments_of_its_saves_a_run_goes_on_to_the_same_bits(self):
        """SIGKILL to all processes, up to 50 ms behind the report of a save: the next one begins."""
        kills, steps = (1000, 20000) if support.LONG else (4, 300)
        changes = {"data": self.data(), "steps": steps, "log": {"every": {"steps": 100}},
                   "checkpoint": {"every": {"steps": 2}, "keep_last": 1}}
        self.run_scaletrain("launch", "--nproc", 1, self.recipe("alone", **changes))
        run = self.folder / "killed"
        path = self.recipe("killed", **changes)
        seed = random.randrange(1 << 30)
        print(f"moments drawn with seed {seed}")
        moments = random.Random(seed)
        killed = 0
        while killed < kills:
            before = support.newest_saved(run)
            process = self.start("launch", "--nproc", 1, "--resume", "auto", path)
            support.wait_until(
                lambda: support.newest_saved(run) > before or process.poll() is not None,
                "a checkpoint")
            if process.poll() is not None:
                break
            time.sleep(moments.uniform(0, 0.05))
            self._end(process)
            killed += 1
            self.assertGreaterEqual(support.inspect(run)["step"], support.newest_saved(run), killed)
        print(f"killed {killed} times")
        self.assertEqual(kills, killed)
        self.run_scaletrain("launch", "--nproc", 1, "--resume", "auto", path)
        self.assertEqual(support.inspect(self.folder / "alone")["model_digest"],
                         support.inspect(run)["model_digest"])

    def data(self):
        return {"train": {"shards": str(support.DIGITS / "train-{000000..000003}.tar")},
                "image_size": 16}


if __name__ == "__main__":
    unittest.main()
