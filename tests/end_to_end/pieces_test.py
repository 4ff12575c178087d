"""Checkpoints that all ranks write together, in pieces."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

from end_to_end import support


def is_stopped(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


class PiecesTest(support.RunTestCase):
    def write(self, name, ranks, **changes):
        """A run of 8 steps whose ranks have a global batch of 12 and write as `changes` say."""
        changes = {"batch": {"global": 12, "per_device": 12 // ranks}, "steps": 8,
                   "optimizer": {"name": "adamw", "lr": 0.01}, "ema": {"decay": 0.9},
                   **changes}
        return self.recipe(name, **changes)

    def checkpoint_of(self, writers):
        return {"every": {"steps": 4}, "writers": writers}

    def test_what_all_ranks_write_is_what_rank_0_writes_and_any_number_goes_on_from_it(self):
        # Its buffers are the ranks' mean, and each rank's own.
        model = {"name": "mobilenet_v3_small", "num_classes": 10}
        written = (2, 4) if support.LONG else (2,)
        for ranks in written:
            digests = set()
            for writers in ("rank_0", "all"):
                name = f"{writers}{ranks}"
                path = self.write(name, ranks, model=model,
                                  checkpoint=self.checkpoint_of(writers))
                self.run_scaletrain("launch", "--nproc", ranks, path)
                found = support.inspect(self.folder / name)
                digests.add((found["model_digest"], str(found["tensors"])))
                pieces = [entry["name"] for entry in found["files"] if "-of-" in entry["name"]]
                self.assertEqual(writers == "all", bool(pieces), pieces)
            self.assertEqual(1, len(digests))
            # Each rank has written about as much.
            folder = self.folder / f"all{ranks}/checkpoints/step-00000008"
            self.assertFalse((folder / "model.safetensors").exists())
            self.assertGreaterEqual(len(list(folder.glob("*-of-*.safetensors"))), ranks)

        for ranks in (1, 2, 3, 4) if support.LONG else (3,):
            digests = set()
            for writers in ("rank_0", "all"):
                name = f"{writers}-on-{ranks}"
                path = self.write(name, ranks, model=model, steps=10,
                                  checkpoint=self.checkpoint_of(writers))
                self.run_scaletrain("launch", "--nproc", ranks, "--allow", "steps", "--allow",
                                    "batch.per_device", "--resume",
                                    self.folder / f"{writers}{written[-1]}", path)
                digests.add(support.inspect(self.folder / name)["model_digest"])
            self.assertEqual(1, len(digests), ranks)

    def test_pieces_are_evaluated_exported_compared_and_joined(self):
        """What docs/reference/checkpoints.md shows:

        scaletrain checkpoint reshard runs/kept --output runs/kept-whole
        """
        run = self.folder / "all"
        path = self.write("all", 2, checkpoint=self.checkpoint_of("all"))
        self.run_scaletrain("launch", "--nproc", 2, path)
        self.run_scaletrain("checkpoint", "verify", run)
        joined = self.folder / "joined"
        out = self.run_scaletrain("checkpoint", "reshard", run, "--output", joined).stdout
        self.assertIn(f"{joined}: {run}/checkpoints/step-00000008 in whole files", out)
        self.run_scaletrain("checkpoint", "verify", joined)
        self.assertEqual(support.inspect(run)["model_digest"],
                         support.inspect(joined)["model_digest"])
        self.assertTrue((joined / "optimizer.safetensors").exists())
        self.assertEqual([], list(joined.glob("*-of-*")))
        self.assertIn("0 of ", self.run_scaletrain("checkpoint", "diff", run, joined).stdout)
        results = [json.loads(self.run_scaletrain("eval", which, "--on", "val", "--json").stdout)
                   for which in (run, joined)]
        for result in results:
            result.pop("checkpoint", None)
            result.pop("time", None)
        self.assertEqual(results[0], results[1])
        self.run_scaletrain("checkpoint", "export", run, self.folder / "export", "--to", "safetensors")
        err = self.run_scaletrain("checkpoint", "reshard", run, "--output", joined, expect=2).stderr
        self.assertIn("exists already", err)

    def test_a_file_of_any_rank_that_is_not_what_it_was_is_named_and_an_older_one_taken(self):
        path = self.write("run", 2, checkpoint=self.checkpoint_of("all"))
        self.run_scaletrain("launch", "--nproc", 2, path)
        checkpoints = self.folder / "run/checkpoints"
        newest = checkpoints / "step-00000008"
        pieces = sorted(newest.glob("*-of-*.safetensors"))
        kept = self.folder / "kept"
        shutil.copytree(newest, kept)

        def flip(file):
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)

        def swap(one, other):
            data = one.read_bytes()
            one.write_bytes(other.read_bytes())
            other.write_bytes(data)

        for damage, named in [
                (lambda: flip(pieces[0]), pieces[0]), (lambda: flip(pieces[-1]), pieces[-1]),
                (lambda: pieces[1].unlink(), pieces[1]),
                (lambda: pieces[1].write_bytes(b""), pieces[1]),
                (lambda: [piece.unlink() for piece in pieces], pieces[0]),
                (lambda: swap(pieces[0], pieces[1]), pieces[0]),
                (lambda: shutil.copy(pieces[0], newest / "model.safetensors"),
                 newest / "model.safetensors")]:
            damage()
            err = self.run_scaletrain("checkpoint", "verify", newest, expect=65).stdout
            self.assertIn(f"{named}: ", err)
            err = self.run_scaletrain("checkpoint", "inspect", newest, expect=65).stderr
            self.assertIn(f"{named}: ", err)
            err = self.run_scaletrain("checkpoint", "inspect", self.folder / "run").stderr
            self.assertIn(f"{named}: ", err)
            shutil.rmtree(newest)
            shutil.copytree(kept, newest)
        flip(pieces[1])
        path = self.write("run", 2, steps=9, checkpoint=self.checkpoint_of("all"))
        err = self.run_scaletrain("launch", "--nproc", 2, "--allow", "steps",
                                  "--resume", "auto", path).stderr
        self.assertIn(f"{pieces[1]}: has the XXH3-128", err)
        self.assertIn("step-00000004", err)

    def test_one_flipped_bit_at_any_place_of_any_file_is_refused_by_its_name(self):
        """100 places of each file in the long form; tensors that are linked are among them."""
        places = 100 if support.LONG else 4
        path = self.write("run", 4, steps=6, model={"name": "mlp", "num_classes": 10, "hidden": 32,
                                                    "layers": 1, "freeze": "fc1.*"},
                          checkpoint={"every": {"steps": 2}, "writers": "all", "incremental": True})
        self.run_scaletrain("launch", "--nproc", 4, path)
        newest = self.folder / "run/checkpoints/step-00000006"
        draw = random.Random(18)
        files = sorted(newest.iterdir())
        self.assertTrue(any("-kept-" in file.name for file in files))
        for file in files:
            data = file.read_bytes()
            for number in range(places):
                place = len(data) * number // places
                flipped = bytearray(data)
                flipped[place] ^= 1 << draw.randrange(8)
                file.write_bytes(flipped)
                result = subprocess.run([support.SCALETRAIN, "checkpoint", "verify", newest],
                                        capture_output=True, text=True)
                self.assertEqual(65, result.returncode, (file, place))
                # Of a manifest that says another format the folder is named.
                named = newest.name if file.name == "manifest.json" else file.name
                self.assertIn(named, result.stdout, place)
            file.write_bytes(data)
        self.run_scaletrain("checkpoint", "verify", newest)
        print(f"{places} places of each of {len(files)} files")

    def test_a_rank_killed_at_any_moment_leaves_nothing_torn(self):
        alone = self.write("alone", 2, checkpoint={"every": {"steps": 1}, "writers": "rank_0"})
        self.run_scaletrain("launch", "--nproc", 2, alone)
        digest = support.inspect(self.folder / "alone")["model_digest"]
        faults = ["kill@6,0", "stop@7,1"]
        if support.LONG:
            faults += ["kill@6,1", "kill@8,1"]
        for fault in faults:
            name = fault.replace("@", "-").replace(",", "-")
            path = self.write(name, 2, checkpoint={"every": {"steps": 1}, "writers": "all"})
            if fault.startswith("stop"):
                self.stop_and_kill(path, fault)
            else:
                self.run_scaletrain("launch", "--nproc", 2, path, expect=137,
                                    env={"SCALETRAIN_FAULT": fault})
            run = self.folder / name
            self.run_scaletrain("checkpoint", "verify", run)
            self.run_scaletrain("launch", "--nproc", 2, "--resume", "auto", path)
            self.assertEqual(digest, support.inspect(run)["model_digest"], fault)
            if fault.startswith("kill"):  # otherwise a zombie may still have the PID
                self.assertEqual([], list((run / "checkpoints").glob("*.tmp.*")))

    def stop_and_kill(self, path, fault):
        """Rank 1 stands still, with a save under way on the other; then all are killed."""
        process = self.start("launch", "--nproc", 2, path, env={"SCALETRAIN_FAULT": fault})
        support.wait_until(lambda: any(map(is_stopped, support.pids_with(process.marker))),
                           "a rank that stands still")
        time.sleep(0.5)
        for pid in support.pids_with(process.marker):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.communicate(timeout=60)


if __name__ == "__main__":
    unittest.main()
