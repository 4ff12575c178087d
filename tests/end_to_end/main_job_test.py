"""The main job as a person runs it: the recipe of the README, from start to summary."""

import json
import subprocess
import tarfile
import time
import unittest

from end_to_end import support


class MainJobTest(support.RunTestCase):
    def test_the_quickstart(self):
        """scripts/quickstart.sh where everything is set up: it starts soon and reaches its accuracy."""
        run = self.folder / "digits"
        command = ["scripts/quickstart.sh"]
        # Half of the epochs, unless in the long form: 194 of the 197 test images were right then.
        epochs, least = (10, 0.98) if support.LONG else (5, 0.95)
        start = time.time()
        result = subprocess.run([*command, "--set", f"output={run}", "--set", f"epochs={epochs}"], cwd=support.ROOT, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        first = support.records(run, "train")[0]
        print(f"first step {first['time'] - start:.1f} s after the command")
        test = support.records(run, "eval")[0]
        self.assertEqual(test["split"], "test")
        self.assertEqual(test["count"], 197)
        self.assertGreaterEqual(test["top1"], least)
        for text in ("test top-1", "best top-1"):
            self.assertIn(text, result.stderr)
        self.assertNotIn("scaletrain resume", result.stderr)  # it is finished

        validations = [r for r in support.records(run, "eval") if r["split"] == "val"]
        self.assertEqual([r["count"] for r in validations], [200] * len(validations))
        saved = support.inspect(run)
        self.assertEqual(saved["world_size"], 2)
        for name in ("latest", "best"):
            self.assertTrue((run / "checkpoints" / name / "manifest.json").is_file(), name)
        for name in ("recipe.json", "environment.json", "metrics.jsonl", "finished.json"):
            self.assertTrue((run / name).is_file(), name)
        classes = json.loads((run / "checkpoints/latest/classes.json").read_text())
        self.assertEqual(len(classes), 10)

        again = self.run_scaletrain("resume", run)
        self.assertIn("finished", again.stderr + again.stdout)
        self.assertEqual(len([r for r in support.records(run, "eval") if r["split"] == "test"]), 1)

    def test_a_folder_of_classes_trains_as_shards_do(self):

        for index in range(4):
            with tarfile.open(support.DIGITS / f"train-{index:06}.tar") as tar:
                members = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
            for name, data in members.items():
                if name.endswith(".png"):
                    label = members[name[:-4] + ".cls"].decode().strip()
                    folder = self.folder / "images" / label
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_bytes(data)
        (self.folder / "images/3/scan.bmp").write_bytes(b"BM")
        path = self.recipe(data={"train": {"folder": str(self.folder / "images")},
                                 "val": {"shards": str(support.DIGITS / "val-000000.tar")},
                                 "image_size": 16}, steps=None, epochs=6)
        done = self.run_scaletrain("launch", "--nproc", 2, path)
        self.assertEqual(1, done.stderr.count("images: these files are not images and are ignored: 1 .bmp\n"))
        last = [r for r in support.records(self.folder / "recipe", "eval")][-1]
        self.assertGreater(last["top1"], 0.5)  # the labels agree: chance is 0.1


if __name__ == "__main__":
    unittest.main()
