"""scaletrain recipe check, show, schema and reference, as a person calls them."""

import copy
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import jsonschema

SCALETRAIN = pathlib.Path(os.environ["SCALETRAIN_BIN"]).resolve() / "scaletrain"
ROOT = pathlib.Path(__file__).resolve().parents[2]
MINIMAL = {
    "model": {"name": "mlp", "num_classes": 10},
    "data": {"train": {"shards": "a.tar"}},
    "optimizer": {"name": "sgd", "lr": 0.1},
    "epochs": 2,
}


def recipe(*arguments, cwd=ROOT):
    return subprocess.run(
        [SCALETRAIN, "recipe", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, timeout=60)


class CheckTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "a.tar").write_bytes(b"")

    def write(self, text):
        (self.folder / "r.json").write_text(text)

    def test_right_recipe_prints_its_batch_plan(self):
        self.write(json.dumps(MINIMAL))
        done = recipe("check", "r.json", "--nproc", 2, "--set", "batch.global=256", cwd=self.folder)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout,
                         "ok: r: global batch 256 = 32 per device x 4 accumulated x 2 ranks\n")
        self.assertEqual(done.returncode, 0)

    def test_a_vocabulary_that_is_left_out_is_that_of_the_training_tokens(self):
        (self.folder / "a.txt").write_text("Tokens are bytes here, and one of them ends a text. " * 40)
        subprocess.run([SCALETRAIN, "data", "tokenize", "a.txt", "--out", "tokens"], cwd=self.folder,
                       capture_output=True, check=True)
        card = self.folder / "tokens/train.tokens.json"
        known = json.loads(card.read_text())["vocab_size"]
        for model, vocabulary in (({}, known), ({"vocab_size": 300}, 300)):
            with self.subTest(model):
                self.write(json.dumps({
                    **MINIMAL, "model": {"name": "gpt2", "positions": 8, "dim": 8, "depth": 1, "heads": 1, **model},
                    "data": {"train": {"tokens": "tokens/train-000000.bin"}}}))
                done = recipe("show", "r.json", cwd=self.folder)
                self.assertEqual(vocabulary, json.loads(done.stdout)["model"]["vocab_size"])
                self.assertEqual("" if model else f"model.vocab_size: {known}, as {card} says\n",
                                 done.stderr)

    def test_keys_that_do_nothing_are_warned_about(self):
        self.write(json.dumps({**MINIMAL, "validate": {"every": {"epochs": 1}}}))
        done = recipe("check", "r.json", "--set", "data.lanes=8", cwd=self.folder)
        self.assertEqual(["warning: --set data.lanes: /data/lanes: does nothing in the indexed order",
                          "warning: r.json:1: /validate: does nothing: there is neither data.val nor data.extra"],
                         done.stderr.splitlines())
        self.assertEqual(0, done.returncode)

    def test_validation_shards_that_are_trained_on_are_warned_about(self):
        (self.folder / "b.tar").write_bytes(b"")
        warning = (f"warning: /data/val: {self.folder}/a.tar is in /data/train too: its metrics are measured on "
                   f"training data\n")
        self.write(json.dumps(MINIMAL))
        for val, said in (("b.tar", ""), ('["b.tar", "a.tar"]', warning)):
            done = recipe("check", "r.json", "--set", f"data.val.shards={val}", cwd=self.folder)
            self.assertEqual((said, 0), (done.stderr, done.returncode))

    def test_all_mistakes_at_once(self):
        self.write('{\n"model": {"name": "mlp", "num_classes": 10},\n'
                   '"data": {"train": {"shards": "a.tar"}},\n'
                   '"optimizer": {"name": "sgd", "lr": "fast"},\n"epochs": 2,\n"sede": 1}')
        done = recipe("check", "r.json", "--set", "batch.per_device=0", cwd=self.folder)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 6)
        self.assertIn('r.json:4: /optimizer/lr: "fast" is not a number', lines[0])
        self.assertEqual(lines[1], "  use a number above 0 and at most 1000")
        self.assertEqual(lines[2], 'r.json:6: /sede: "sede" is not a key here')
        self.assertEqual(lines[3], '  did you mean "seed"?')
        self.assertEqual(lines[4], "--set batch.per_device: 0 is out of range")
        self.assertEqual(lines[5], "  use an integer from 1 to 1048576")
        self.assertEqual(done.returncode, 2)

    def test_batch_that_does_not_divide(self):
        self.write(json.dumps(MINIMAL))
        done = recipe("check", "r.json", "--nproc", 3, "--set", "batch.global=256", cwd=self.folder)
        self.assertIn("/batch/global: 256 is not a multiple of 96 = per_device 32 x 3 ranks\n"
                      "  use 192 or 288, or another number of ranks\n", done.stderr)
        self.assertEqual(done.returncode, 2)

    def test_missing_shard(self):
        self.write(json.dumps(MINIMAL))
        done = recipe("check", "r.json", "--set", "data.val.shards=v-{0..1}.tar", cwd=self.folder)
        for number in range(2):
            self.assertIn(f"/data/val/shards: {self.folder}/v-{number}.tar: "
                          "No such file or directory (ENOENT)\n", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.returncode, 65)

    def test_check_explain_and_launch_refuse_the_same_and_make_no_folder(self):
        for name in ("cat", "dog"):
            (self.folder / "pictures" / name).mkdir(parents=True)
            for number in range(2):
                (self.folder / "pictures" / name / f"{number}.png").write_bytes(b"")
        (self.folder / "a.bin").write_bytes(bytes([1, 0, 9, 0]) * 200)  # 400 tokens, 1 and 9
        pictures = {"data": {"train": {"folder": "pictures"}}}
        gpt = {"name": "gpt2", "positions": 8, "dim": 8, "depth": 1, "heads": 1}
        llama = {"name": "llama", "positions": 8, "dim": 12, "kv_heads": 1, "vocab_size": 10}
        tokens = {"data": {"train": {"tokens": "a.bin"}}}
        for changes, status, found in (
                ({"data": {"train": {"folder": "absent"}}}, 65, "/data/train/folder: "),
                ({"model": {"name": "mlp", "num_classes": 10, "weights": "absent"}}, 65, "/model/weights/path: "),
                (pictures, 2, "a global batch of 32 samples (per_device 32 x accumulate 1 x 1 ranks) is more than "
                              "the 4 samples of an epoch"),
                ({**pictures, "batch": {"per_device": 2}, "model": {"name": "mlp", "num_classes": 1}}, 2,
                 "/model/num_classes: 1 is less than the 2 classes of"),
                ({**tokens, "batch": {"per_device": 2}, "model": {**gpt, "vocab_size": 9}}, 65,
                 "token 9 is beyond the model's vocabulary of 9 (/model/vocab_size)"),
                ({**tokens, "model": {**gpt, "vocab_size": 10}, "batch": {"per_device": 64}}, 2,
                 "/data/train/tokens: has "),
                ({**tokens, "model": {**llama, "heads": 4}}, 2,
                 '/model/heads: 4 divides "dim" into parts of 3, which is odd'),
                ({**tokens, "model": {**llama, "heads": 5}}, 2,
                 '/model/heads: 5 does not divide "dim", which is 12')):
            self.write(json.dumps({**MINIMAL, **changes, "output": "run"}))
            for command in (("recipe", "check"), ("explain", "launch"), ("launch",)):
                with self.subTest(command=command, found=found):
                    done = subprocess.run([SCALETRAIN, *command, "r.json"], cwd=self.folder, capture_output=True,
                                          text=True, timeout=60)
                    self.assertIn(found, done.stderr)
                    self.assertEqual(status, done.returncode)
                    self.assertFalse((self.folder / "run").exists())

    def test_no_recipe(self):
        done = recipe("check", "none.json", cwd=self.folder)
        self.assertIn("none.json: cannot be read: No such file or directory (ENOENT)", done.stderr)
        self.assertEqual(done.returncode, 2)


class ShowTest(unittest.TestCase):
    def test_shown_recipe_shows_the_same_again(self):
        for path in sorted((ROOT / "recipes").rglob("*.json")):
            first = recipe("show", path, "--set", "seed=5")
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertEqual(json.loads(first.stdout)["seed"], 5)
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(first.stdout)
                file.flush()
                self.assertEqual(recipe("show", file.name, cwd="/").stdout, first.stdout)

    def test_each_row_of_the_table_of_techniques_is_a_recipe_and_each_recipe_a_row(self):
        page = (ROOT / "docs/lab/techniques.md").read_text()
        linked = set(re.findall(r"\((?:\.\./)+recipes/techniques/(.*?\.json)\)", page))
        there = {str(path.relative_to(ROOT / "recipes/techniques"))
                 for path in (ROOT / "recipes/techniques").rglob("*.json")}
        self.assertEqual(there, linked)
        self.assertGreater(len(there), 30)


class PublishedTest(unittest.TestCase):
    """The recipes of sets that are not here, with small ones in their place."""

    def test_published_recipes_are_valid_and_have_the_batch_of_their_source(self):
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            for name in ("a", "b"):
                (folder / f"{name}.tar").write_bytes(b"")
                (folder / f"{name}.bin").write_bytes(bytes(2 * 200_000))
            images = ("data.train.shards=a.tar", "data.val.shards=b.tar")
            tokens = ("data.train.tokens=a.bin", "data.val.tokens=b.bin", "batch.global=64",
                      "batch.per_device=8")
            for name, sets, plan in (
                    ("imagenet_resnet50", images, "256 = 32 per device x 1 accumulated x 8 ranks"),
                    ("imagenet_vit_small", images, "1024 = 128 per device x 1 accumulated x 8 ranks"),
                    ("imagenet_convnext_tiny", images,
                     "4096 = 128 per device x 4 accumulated x 8 ranks"),
                    ("gpt2_124m", tokens, "64 = 8 per device x 1 accumulated x 8 ranks"),
                    ("llama_1b", tokens,
                     "64 = 8 per device x 2 accumulated x 4 groups of 2 ranks")):
                with self.subTest(name):
                    path = ROOT / "recipes" / f"{name}.json"
                    flags = [word for one in sets for word in ("--set", one)]
                    done = recipe("check", path, "--nproc", 8, *flags, cwd=folder)
                    self.assertEqual("", done.stderr)
                    self.assertEqual(f"ok: {name.replace('_', '-')}: global batch {plan}\n", done.stdout)

    def test_what_is_missing_is_said_set_by_set(self):
        for name in ("imagenet_resnet50", "gpt2_124m"):
            done = recipe("check", ROOT / "recipes" / f"{name}.json", cwd="/")
            self.assertEqual(65, done.returncode)
            self.assertIn("No such file or directory (ENOENT)", done.stderr)


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(recipe("schema").stdout)
        cls.validator = jsonschema.Draft7Validator(cls.schema)

    def accepted(self, value):
        return self.validator.is_valid(value)

    def test_schema_is_a_schema(self):
        jsonschema.Draft7Validator.check_schema(self.schema)

    def test_accepts_the_recipes_as_written_and_as_resolved(self):
        paths = sorted((ROOT / "recipes").rglob("*.json"))
        self.assertGreaterEqual(len(paths), 3)
        for path in paths:
            written = json.loads(path.read_text())
            self.validator.validate(written)
            shown = json.loads(recipe("show", path).stdout)
            self.validator.validate(shown)
            self.assertEqual(shown["description"], [written["description"]] if isinstance(written["description"], str)
                             else written["description"])

    def test_agrees_with_the_program(self):
        # (key, value, right or wrong); None removes the key.
        cases = [
            (("epochs",), 0.5, True), (("epochs",), 0, False), (("epochs",), None, False),
            (("steps",), 5, False), (("seed",), -1, False), (("seed",), "1", False),
            (("sede",), 1, False), (("version",), 1, True), (("version",), 2, False),
            (("$schema",), "x", True), (("ema",), {}, True), (("profile",), {}, True), (("safety",), {}, False),
            (("parallel",), {}, True), (("parallel",), {"tensor": 0}, False),
            (("parallel",), {"sequence": False}, True), (("device",), "gpu", False),
            (("model", "name"), "resnet81", False), (("model", "hidden"), 0, False),
            (("model", "depth"), 2, False), (("model", "num_classes"), None, False),
            (("model",), "mlp", False), (("loss",), "cross_entropy", True),
            (("loss",), {"label_smoothing": 1}, False),
            (("loss",), {"label_smoothing": 0.5}, True),
            (("data", "train", "folder"), "f", False), (("data", "train", "shards"), [], False),
            (("data", "train", "shards"), ["a", "b"], True),
            (("data", "train", "augment"), ["random_flip"], True),
            (("data", "train", "augment"), [{"name": "random_crop", "padding": -1}], False),
            (("data", "val"), {"folder": "v"}, True),
            (("data", "val"), {"folder": "v", "augment": []}, False),
            (("data", "normalize"), {"mean": [0, 0]}, False),
            (("batch",), {"accumulate": 1, "global": 2}, False),
            (("batch",), {"global": 64}, True), (("batch",), {}, True),
            (("schedule",), "cosine", True), (("schedule",), "cosin", False),
            (("schedule",), {"decay": {"name": "step", "gamma": 0.5}}, True),
            (("schedule",), "multi_step", False), (("schedule",), {"decay": "multi_step"}, False),
            (("schedule",), {"decay": {"name": "multi_step", "milestones": [3, 4.5]}}, True),
            (("schedule",), {"decay": {"name": "multi_step", "milestones": []}}, False),
            (("schedule",), {"warmup": {"epochs": 0}}, True),
            (("schedule",), {"warmup": {"minutes": 1}}, False),
            (("checkpoint",), {"every": {"steps": 1, "epochs": 1}}, False),
            (("checkpoint",), {"every": {"minutes": 1}}, True),
            (("clip",), {}, False), (("clip",), {"norm": 1}, True),
            (("clip",), {"value": 1}, True), (("clip",), {"norm": 1, "value": 1}, False),
            (("mix",), {}, False), (("mix",), {"probability": 0.5}, False),
            (("mix",), {"cutmix": 1}, True), (("mix",), {"mixup": 0, "cutmix": 0}, True),
            (("optimizer", "lr"), 0, False), (("optimizer", "beta1"), 0.5, False),
        ]
        for path, value, right in cases:
            changed = copy.deepcopy(MINIMAL)
            *outer, last = path
            inner = changed
            for key in outer:
                inner = inner[key]
            if value is None:
                del inner[last]
            else:
                inner[last] = value
            with self.subTest(path=path, value=value):
                self.assertEqual(self.accepted(changed), right)
                with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                    json.dump(changed, file)
                    file.flush()
                    done = recipe("show", file.name)
                self.assertEqual(done.returncode, 0 if right else 2, done.stderr)


class Walker:
    """The schema as an editor reads it: which values and keys it offers at a place of a recipe."""

    def __init__(self, schema):
        self.schema = schema

    def parts(self, schema, value, is_top=False):
        """The schemas that apply to `value`: itself, its $ref, allOf, the branches of anyOf without "required" and,
        below the top, the branch of if that it fulfils."""
        if "$ref" in schema:
            schema = self.schema["definitions"][schema["$ref"].split("/")[-1]]
        yield schema
        for part in schema.get("allOf", []):
            yield from self.parts(part, value)
        for part in schema.get("anyOf", []):
            if "required" not in part:
                yield from self.parts(part, value)
        if "if" in schema and isinstance(value, dict):
            holds = jsonschema.Draft7Validator(schema["if"]).is_valid(value)
            if holds or not is_top:
                yield from self.parts(schema.get("then" if holds else "else", {}), value)

    def at(self, recipe, *keys):
        """The schemas of the value at `keys`, without what a complete recipe must have besides."""
        found, value = [self.schema], recipe
        for key in keys:
            inner = value.get(key, {}) if isinstance(value, dict) else {}
            found = [part["properties"][key] for schema in found
                     for part in self.parts(schema, value, True)
                     if isinstance(part.get("properties", {}).get(key), dict)]
            value = inner
        return [part for schema in found for part in self.parts(schema, value)]

    def values(self, recipe, *keys):
        return {name for part in self.at(recipe, *keys) for name in part.get("enum", [])}

    def keys(self, recipe, *keys):
        return {name for part in self.at(recipe, *keys) for name in part.get("properties", {})}


class EditorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(recipe("schema").stdout)
        cls.walker = Walker(cls.schema)
        cls.text = recipe("reference").stdout
        cls.names = {}  # "Models" -> its names, each with its own keys
        for section in re.split(r"^## ", cls.text, flags=re.M)[1:]:
            heading, _, rest = section.partition("\n")
            rows = re.split(r"^### `([\w.-]+)`$", rest, flags=re.M)
            cls.names[heading] = {name: set(re.findall(r"^\| `(\w+)`", body, re.M))
                                  for name, body in zip(rows[1::2], rows[2::2])}

    def test_an_empty_recipe_is_offered_all_names(self):
        for place, heading in ((("model", "name"), "Models"), (("optimizer", "name"), "Optimizers"),
                               (("schedule", "decay"), "Learning rate schedules"), (("loss",), "Losses"),
                               (("precision",), "Precisions"), (("loss", "name"), "Losses")):
            with self.subTest(place=place):
                self.assertGreater(len(self.names[heading]), 2)
                self.assertEqual(set(self.names[heading]), self.walker.values({}, *place))

    def test_a_name_is_offered_exactly_its_keys(self):
        for place, heading in ((("model",), "Models"), (("optimizer",), "Optimizers"), (("loss",), "Losses"),
                               (("precision",), "Precisions"), (("schedule", "decay"), "Learning rate schedules")):
            common = set(re.findall(rf"^\| `{re.escape('.'.join(place))}\.(\w+)` ", self.text, re.M))
            self.assertIn("name", common)
            for name, own in self.names[heading].items():
                with self.subTest(place=place, name=name):
                    offered = self.offered(place, name)
                    self.assertEqual(set(), own - offered)
                    self.assertEqual(set(), offered - own - common)

    def offered(self, place, name):
        value = {"name": name}
        for key in reversed(place):
            value = {key: value}
        return self.walker.keys(value, *place)

    def test_an_unknown_key_and_name_are_refused_in_a_part_of_a_recipe_too(self):
        validator = jsonschema.Draft7Validator(self.schema)
        for changes, right in (({"model": {"depth": 24}}, True), ({"precision": None}, True),
                               ({"batch": {"global": None}}, True), ({"model": {"name": "mlp", "depth": 2}}, False),
                               ({"model": {"name": "no"}}, False), ({"no": 1}, False), ({"loss": "focal"}, True)):
            with self.subTest(changes=changes):
                self.assertEqual(right, validator.is_valid({"extends": "base.json", **changes}))

    def test_values_have_their_help(self):
        for part in self.walker.at({}, "optimizer", "name"):
            self.assertEqual(len(part["enum"]), len(part["enumDescriptions"]))
        self.assertTrue(self.schema["allowTrailingCommas"])


class ReferenceTest(unittest.TestCase):
    def test_the_document_is_what_the_program_prints(self):
        text = recipe("reference").stdout
        self.assertGreater(len(text), 1000)
        self.assertEqual((ROOT / "docs/reference/recipe.md").read_text(), text,
                         "write it again: scaletrain recipe reference > docs/reference/recipe.md")

    def test_the_page_of_models_is_what_the_program_prints(self):
        text = recipe("models").stdout
        self.assertIn("| `resnet50` |", text)
        self.assertEqual((ROOT / "docs/reference/models.md").read_text(), text,
                         "write it again: scaletrain recipe models > docs/reference/models.md")


if __name__ == "__main__":
    unittest.main()
