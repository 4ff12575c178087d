"""scaletrain recipe new: a recipe for each kind of training data, which checks and trains."""

import csv
import io
import json
import shlex
import shutil
import subprocess
import tarfile
import unittest

import numpy
import pyarrow
import pyarrow.parquet

from launcher.launch_support import BIN, LIMIT_S, LaunchTestCase

CLASSES = 3
TEXT = "The model reads bytes here, and one more token ends each document. " * 80


class RecipeNew(LaunchTestCase):
    def data(self, *words):
        return self.run_launcher("data", *words)

    def draw(self, folder, name="train", samples=24, **options):
        flags = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
        self.data("synth", folder, "--name", name, "--samples", samples, "--classes", CLASSES, "--size", 32,
                  "--encoding", "png", *flags)

    def draw_folder(self, folder, seed=0):
        """Images in one sub-folder a class."""
        self.draw("drawn", seed=seed)
        with tarfile.open(self.folder / "drawn/train-000000.tar") as shard:
            members = {member.name: shard.extractfile(member).read() for member in shard.getmembers()}
        for name, image in members.items():
            key, ending = name.rsplit(".", 1)
            if ending != "png":
                continue
            label = members[f"{key}.cls"].decode().strip()
            file = self.folder / folder / f"class-{label}" / f"{key}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(image)
        shutil.rmtree(self.folder / "drawn")

    def write_new(self, data, *flags):
        """The recipe, after the commands that it printed before the launch."""
        done = self.run_launcher("recipe", "new", "--data", data, "-o", "new.json", *flags)
        *prepare, launch = done.stdout.splitlines()
        self.assertEqual("scaletrain launch new.json", launch)
        for command in prepare:
            subprocess.run([BIN / "scaletrain", *shlex.split(command)[1:]], cwd=self.folder, check=True,
                           capture_output=True, timeout=LIMIT_S)
        return json.loads((self.folder / "new.json").read_text())

    def assert_trains(self, length):
        checked = self.run_launcher("recipe", "check", "new.json")
        self.assertNotIn("warning", checked.stderr)
        self.run_launcher("launch", "new.json", "--set", length, "--set", "log.every.steps=1",
                          "--set", "output=run", "--set", "schedule=constant")
        records = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertLessEqual(2, sum(record["event"] == "train" for record in records))

    def assert_images(self, recipe, task="image_classification"):
        self.assertEqual((task, CLASSES, 32),
                         (recipe["task"], recipe["model"]["num_classes"], recipe["data"]["image_size"]))
        self.assertIn("$schema", recipe)
        self.assertIn("description", recipe)
        self.assert_trains("epochs=1")

    def assert_text(self, recipe):
        self.assertEqual(257, recipe["model"]["vocab_size"])
        self.assert_trains("steps=2")

    def test_folder_with_a_sub_folder_for_each_class(self):
        self.draw_folder("photos")
        recipe = self.write_new("photos")
        self.assertEqual("photos", recipe["data"]["train"]["folder"])
        self.assertIn("scaletrain data split", "".join(recipe["description"]))
        self.assert_images(recipe)

    def test_folder_with_train_and_val(self):
        self.draw_folder("photos/train")
        self.draw_folder("photos/val", seed=1)
        recipe = self.write_new("photos/")
        self.assertEqual({"folder": "photos/val"}, recipe["data"]["val"])
        self.assert_images(recipe)

    def test_folder_of_shards(self):
        self.draw("set")
        self.draw("set", name="val", seed=1)
        recipe = self.write_new("set")
        self.assertEqual("set/train-*.tar", recipe["data"]["train"]["shards"])
        self.assertEqual({"shards": "set/val-*.tar"}, recipe["data"]["val"])
        self.assert_images(recipe)

    def test_shards_with_braces(self):
        self.draw("set", samples_per_shard=12)
        recipe = self.write_new("set/train-{000000..000001}.tar")
        self.assertEqual("set/train-{000000..000001}.tar", recipe["data"]["train"]["shards"])
        self.assert_images(recipe)

    def test_one_tar_and_a_vision_transformer(self):
        self.draw("set")
        recipe = self.write_new("set/train-000000.tar", "--model", "vit_tiny")
        self.assertEqual(4, recipe["model"]["patch_size"])
        self.assert_images(recipe)

    def test_shards_with_several_labels_a_sample(self):
        self.draw("set")
        (self.folder / "many").mkdir()
        with tarfile.open(self.folder / "set/train-000000.tar") as old, \
                tarfile.open(self.folder / "many/train-000000.tar", "w") as new:
            for member in old.getmembers():
                content = old.extractfile(member).read()
                if member.name.endswith(".cls"):
                    content = json.dumps(sorted({0, int(content)} | {2})).encode()
                info = tarfile.TarInfo(member.name)
                info.size = len(content)
                new.addfile(info, io.BytesIO(content))
        self.assert_images(self.write_new("many"), task="multi_label_classification")

    def test_list_of_images(self):
        self.draw_folder("photos")
        with open(self.folder / "list.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "label"])
            for image in sorted((self.folder / "photos").rglob("*.png")):
                writer.writerow([image.relative_to(self.folder), image.parent.name])
        recipe = self.write_new("list.csv")
        self.assertEqual("list-shards/train-*.tar", recipe["data"]["train"]["shards"])
        self.assertEqual(CLASSES, recipe["model"]["num_classes"])
        self.assert_trains("epochs=1")

    def test_list_of_images_as_json_lines(self):
        self.draw_folder("photos")
        (self.folder / "list.jsonl").write_text("".join(
            json.dumps({"path": str(image.relative_to(self.folder)), "label": image.parent.name}) + "\n"
            for image in sorted((self.folder / "photos").rglob("*.png"))))
        recipe = self.write_new("list.jsonl")
        self.assertEqual(CLASSES, recipe["model"]["num_classes"])
        self.assert_trains("epochs=1")

    def test_text(self):
        (self.folder / "corpus.txt").write_text(TEXT)
        recipe = self.write_new("corpus.txt")
        self.assertEqual({"tokens": "corpus-tokens/train-000000.bin"}, recipe["data"]["train"])
        self.assert_text(recipe)

    def test_json_lines(self):
        (self.folder / "corpus.jsonl").write_text((json.dumps({"content": TEXT[:670]}) + "\n") * 8)
        self.assert_text(self.write_new("corpus.jsonl"))

    def test_folder_of_tokens_with_cards(self):
        (self.folder / "corpus.txt").write_text(TEXT)
        for name in ("train", "val"):
            self.data("tokenize", "corpus.txt", "--out", "tokens", "--name", name)
        recipe = self.write_new("tokens", "--model", "llama")
        self.assertEqual({"tokens": "tokens/val-000000.bin"}, recipe["data"]["val"])
        self.assert_text(recipe)

    def test_token_file_with_a_card(self):
        (self.folder / "corpus.txt").write_text(TEXT)
        self.data("tokenize", "corpus.txt", "--out", "tokens")
        self.assert_text(self.write_new("tokens/train-000000.bin"))

    def test_data_of_another_format_is_imported_first(self):
        (self.folder / "rows.parquet").write_bytes(b"PAR1")
        done = self.run_launcher("recipe", "new", "--data", "rows.parquet")
        self.assertEqual("scaletrain data import parquet rows.parquet --out rows-shards\n"
                         "scaletrain recipe new --data rows-shards\n", done.stdout)
        self.assertFalse((self.folder / "rows.json").exists())

    def test_parquet_trains_after_its_import(self):
        self.draw_folder("photos")
        images = sorted((self.folder / "photos").rglob("*.png"))
        pyarrow.parquet.write_table(
            pyarrow.table({"image": [image.read_bytes() for image in images],
                           "label": [int(image.parent.name[-1]) for image in images]}),
            self.folder / "rows.parquet")
        *prepare, again = self.run_launcher("recipe", "new", "--data", "rows.parquet").stdout.splitlines()
        for command in prepare:
            self.run_launcher(*shlex.split(command)[1:])
        self.assert_images(self.write_new(shlex.split(again)[-1]))

    def test_tokens_without_a_card_are_taken_for_those_of_gpt2(self):
        numpy.arange(2_000, dtype=numpy.uint16).tofile(self.folder / "corpus.bin")
        recipe = self.write_new("corpus.bin")
        self.assertEqual((50257, 2), (recipe["model"]["vocab_size"], recipe["data"]["token_bytes"]))
        self.assert_trains("steps=2")

    def test_token_file_of_numpy(self):
        numpy.save(self.folder / "corpus.npy", numpy.arange(2_000, dtype=numpy.uint16))
        recipe = self.write_new("corpus.npy")
        self.assertEqual({"tokens": "corpus.npy"}, recipe["data"]["train"])
        self.assert_trains("steps=2")

    def test_data_that_is_not_there_or_not_known_is_refused(self):
        (self.folder / "empty").mkdir()
        for name, reason in (("absent", "does not exist"), ("empty", "is not training data in a known format")):
            with self.subTest(name):
                self.assertIn(f"{name}: {reason}",
                              self.run_launcher("recipe", "new", "--data", name, expect=2).stderr)

    def test_a_recipe_that_exists_is_kept(self):
        self.draw("set")
        (self.folder / "set.json").write_text("mine")
        self.assertIn("exists already", self.run_launcher("recipe", "new", "--data", "set", expect=2).stderr)
        self.assertEqual("mine", (self.folder / "set.json").read_text())

    def test_a_model_for_text_does_not_take_images(self):
        self.draw("set")
        done = self.run_launcher("recipe", "new", "--data", "set", "--model", "gpt2", "-o", "-", expect=2)
        self.assertIn('"gpt2" is not a model for images', done.stderr)

    def test_a_git_lfs_pointer_in_place_of_the_data_is_named(self):
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
        for name in ("photos/a/1.png", "train-000000.tar", "list.csv", "lines.jsonl", "tokens.bin", "tokens.npy",
                     "corpus.txt", "rows.parquet"):
            with self.subTest(name):
                file = self.folder / "given" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(pointer)
                data = file.parent.parent if name.startswith("photos") else file
                done = self.run_launcher("recipe", "new", "--data", data, expect=65)
                self.assertIn(f"{file}: is a git-lfs pointer, not the file itself", done.stderr)


if __name__ == "__main__":
    unittest.main()
