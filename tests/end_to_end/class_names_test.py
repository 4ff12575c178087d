"""Sets that name their classes are matched by name with the training set, whatever their own numbers
are: in validation, after a resume, in eval and predict, and with the head of another run's weights."""

import contextlib
import csv
import io
import json
import pathlib
import shutil
import tarfile
import tempfile
import unittest

import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from end_to_end import support
from parity.twins import peer_model

COLOURS = {"a": (255, 0, 0), "b": (0, 255, 0), "c": (0, 0, 255), "d": (255, 255, 0)}
IMAGES = 8  # of a class


def picture(name):
    file = io.BytesIO()
    Image.new("RGB", (8, 8), COLOURS[name]).save(file, "PNG")
    return file.getvalue()


def write_folder(folder, classes):
    for name in classes:
        (folder / name).mkdir(parents=True)
        for i in range(IMAGES):
            (folder / name / f"{i}.png").write_bytes(picture(name))
    return {"folder": str(folder)}


def write_shards(folder, classes, label_of, names=None):
    """A shard with `label_of` a class in its JSON, and `names` in classes.json."""
    folder.mkdir()
    with tarfile.open(folder / "0.tar", "w") as tar:
        for i in range(IMAGES):
            for name in classes:
                for suffix, data in (("png", picture(name)),
                                     ("json", json.dumps({"y": label_of(name)}).encode())):
                    member = tarfile.TarInfo(f"{name}{i}.{suffix}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    if names:
        (folder / "classes.json").write_text(json.dumps(names))
    return {"shards": str(folder / "0.tar")}


class ClassNamesTest(support.RunTestCase):
    """One run on the class folders a, b and c, which all tests look at."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        cls.train = write_folder(cls.home / "train", "abc")
        cls.two = write_folder(cls.home / "two", "ac")
        cls.order = write_shards(cls.home / "order", "abc", "cba".index, ["c", "b", "a"])
        cls.unknown = write_folder(cls.home / "unknown", "ad")
        case = cls("launch")
        case.folder = cls.home
        case.launch("run", extra={
            "order": cls.order, "names": write_shards(cls.home / "names", "ca", str)})
        case.doCleanups()
        cls.run_folder = cls.home / "run"

    def launch(self, name, expect=0, train=None, val=None, extra=None, steps=40, lr=0.01, **model):
        data = {"train": train or self.train, "val": val or self.two, "image_size": 8,
                "label": {"field": "json", "key": "y"}, "index_cache": str(self.folder / "index"),
                **({"extra": extra} if extra else {})}
        recipe = self.recipe(name, data=data, steps=steps, batch={"per_device": IMAGES},
                             model={"name": "mlp", "num_classes": 3, "hidden": 16, **model},
                             optimizer={"name": "adamw", "lr": lr})
        return self.run_scaletrain("launch", recipe, expect=expect).stderr

    def check(self, expect=65, train=None, val=None, **model):
        """The messages of `recipe check`."""
        recipe = self.recipe("check", batch={"per_device": IMAGES}, steps=1, model={
            "name": "mlp", "num_classes": 3, "hidden": 16, **model}, data={
                "train": train or self.train, "val": val or self.two, "image_size": 8})
        return self.run_scaletrain("recipe", "check", recipe, expect=expect).stderr

    def top1(self, run):
        return {record["split"]: record["top1"] for record in support.records(run, "eval")}

    @contextlib.contextmanager
    def moved(self, source, target):
        """The folder under another name."""
        source.rename(target)
        try:
            yield
        finally:
            target.rename(source)

    def assert_refused(self, text, place, name, owner):
        self.assertIn(f'{place}: has the class "{name}", which {owner} does not have\n', text)
        self.assertIn(f'  {owner} has "a", "b", "c": ', text)

    def test_held_out_sets_have_the_numbers_of_the_training_set(self):
        self.assertEqual({"val": 1.0, "extra/order": 1.0, "extra/names": 1.0},
                         self.top1(self.run_folder))

    def test_a_name_that_training_does_not_have_is_65(self):
        for text in (self.launch("refused", expect=65, val=self.unknown),
                     self.check(val=self.unknown),
                     self.check(train={"sources": [self.train, self.unknown]})):
            self.assert_refused(text, self.home / "unknown", "d", "data.train")
        self.assertFalse((self.folder / "refused").exists())  # the launcher refuses it
        val = write_shards(self.folder / "val", "ab", str, ["a", "B"])
        self.assertIn('classes.json: has the class "B", which data.train does not have',
                      self.check(val=val))

    def test_a_resume_with_a_class_folder_that_was_renamed_or_added_is_65(self):
        train = self.home / "train"
        for moved, name in (((train / "b", train / "bb"), "bb"),
                            ((self.home / "unknown/d", train / "d"), "d")):
            with self.subTest(name), self.moved(*moved):
                done = self.run_scaletrain("resume", self.run_folder, "--set", "steps=50",
                                           "--allow", "steps", expect=65)
                self.assert_refused(done.stderr, train, name, "the checkpoint")

    def test_eval_and_predict_use_the_names_of_the_training_set(self):
        table = self.folder / "table.csv"
        done = self.run_scaletrain("eval", self.run_folder, "--data", self.two["folder"], "--json",
                                   "--predictions", table)
        found = json.loads(done.stdout)
        self.assertEqual(1, found["measures"]["top1"])
        self.assertEqual([("a", IMAGES), ("b", 0), ("c", IMAGES)],
                         [(one["name"], one["count"]) for one in found["classes"]])
        with table.open(newline="") as file:
            for row in csv.DictReader(file):
                self.assertEqual(row["key"][0], row["label"])
        done = self.run_scaletrain("eval", self.run_folder, "--data", self.unknown["folder"],
                                   expect=65)
        self.assert_refused(done.stderr, self.home / "unknown", "d", "the checkpoint")
        done = self.run_scaletrain("predict", self.run_folder, self.home / "two/c/0.png", "--json")
        self.assertEqual("c", json.loads(done.stdout)["predictions"][0]["label"])
        shutil.copy(self.home / "two/c/0.png", self.folder / "=1+1.png")  # no formula for a spreadsheet
        done = self.run_scaletrain("predict", self.run_folder, "=1+1.png", "--csv", "--top", 1)
        (row,) = csv.DictReader(io.StringIO(done.stdout))
        self.assertEqual(("'=1+1.png", "c"), (row["image"], row["label"]))
        float(row["probability"])

    def test_the_head_of_timm_with_another_class_order_is_put_in_order(self):
        names = {"c": 0, "a": 1, "b": 2}
        weights = peer_model("resnet18", num_classes=3).state_dict()
        folder = self.folder / "timm"
        folder.mkdir()
        save_file({name: value.contiguous() for name, value in weights.items()},
                  folder / "model.safetensors")

        def write_config(labels):
            (folder / "config.json").write_text(json.dumps({
                "architecture": "resnet18", "num_classes": 3, "label_names": labels}))

        model = {"name": "resnet18", "num_classes": 3, "weights": str(folder)}
        recipe = self.recipe("timm_run", data={"train": self.train, "image_size": 32}, steps=1,
                             batch={"per_device": IMAGES}, model=model,
                             optimizer={"name": "sgd", "lr": 1e-9})
        write_config(list(names))
        self.run_scaletrain("launch", recipe)
        trained = load_file(self.folder / "timm_run/checkpoints/latest/model.safetensors")
        for part in ("weight", "bias"):
            rows = weights[f"fc.{part}"][[names[name] for name in "abc"]]
            torch.testing.assert_close(trained[f"fc.{part}"], rows, rtol=0, atol=1e-6)
        write_config(["c", "a", "bb"])
        for command in ("launch", "recipe check"):
            text = self.run_scaletrain(*command.split(), recipe, "--set", "output=refused",
                                       expect=65).stderr
            self.assertIn(f'{folder}: has the class "bb", which data.train does not have', text)
        self.run_scaletrain("recipe", "check", recipe, "--set",
                            'model.weights.allow_other=["class_names"]')

    def test_weights_of_a_run_with_other_classes_are_refused_by_recipe_check(self):
        other = write_folder(self.folder / "other", "abd")
        text = self.check(train=other, val=other, weights=str(self.run_folder))
        self.assertIn(f'{self.run_folder}: has the class "c", which data.train does not have', text)
        self.check(0, train=other, val=other, weights={"path": str(self.run_folder),
                                                       "new_head": True})

    def test_the_head_of_a_run_with_another_class_order_is_put_in_order(self):
        self.launch("tuned", train=self.order, steps=1, lr=1e-9, weights=str(self.run_folder))
        self.assertEqual({"val": 1.0}, self.top1(self.folder / "tuned"))


if __name__ == "__main__":
    unittest.main()
