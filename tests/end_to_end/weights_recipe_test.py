"""What a recipe says and what its data, its weights or its run say: the outcome of each difference, in
a table of all commands. None is silent."""

import functools
import hashlib
import http.server
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest

import tokenizers
import tokenizers.models
import tokenizers.trainers
from PIL import Image

from end_to_end import support

ROWS = ("class names", "mean", "std", "interpolation", "crop", "tokenizer", "vocabulary",
        "number of classes", "dtype", "token width")
COLUMNS = ("fresh run", "resume", "weights of a run", "weights of timm", "weights of HF", "eval",
           "predict")
IMAGES = ("mean", "std", "interpolation", "crop", "dtype")
# Cells without a second side, and those that another test has.
NOTHING_ELSE = "the recipe alone says it"
OWN = "the run's own is used"
NO_IMAGES = "Hugging Face's folder is of a language model"
NO_TOKENS = "timm's folder is of images"
NAMES = "class_names_test.py"
ELSEWHERE = {
    **{(row, "fresh run"): NOTHING_ELSE for row in IMAGES},
    **{(row, column): OWN for row in IMAGES for column in ("eval", "predict")},
    ("number of classes", "predict"): OWN,
    **{(row, "weights of HF"): NO_IMAGES for row in ("mean", "std", "interpolation", "crop",
                                                     "number of classes", "class names")},
    **{(row, "weights of timm"): NO_TOKENS for row in ("tokenizer", "vocabulary", "token width")},
    **{("token width", column): "weights and prompts have no token files"
       for column in ("weights of a run", "weights of HF", "predict")},
    **{("class names", column): NAMES for column in COLUMNS if column != "weights of HF"},
    ("dtype", "weights of timm"): "timm's config.json has no dtype",
}

IMAGE_KEYS = {"mean": 'data.normalize.mean=[0.1, 0.1, 0.1]', "std": 'data.normalize.std=[1, 1, 1]',
              "interpolation": "data.eval_filter=bicubic", "crop": "data.eval_resize=16",
              "dtype": "precision=bf16", "number of classes": "model.num_classes=4"}
WARNED = {"mean": "mean [0.485, 0.456, 0.406], not [0.1, 0.1, 0.1]",
          "std": "std [0.229, 0.224, 0.225], not [1, 1, 1]",
          "interpolation": "eval_filter bilinear, not bicubic",
          "crop": "crop 1, not 0.5", "dtype": "precision fp32, not bf16",
          "number of classes": "num_classes 3, not 4"}
OTHER_TOKENIZER = "tokenizer.json " + 64 * "0"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class WeightsRecipeTest(support.RunTestCase):
    """A run on three class folders and one on bytes, which all tests look at."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        for name in "abc":
            (cls.home / "train" / name).mkdir(parents=True)
            for i in range(4):
                Image.new("RGB", (8, 8), (80 * "abc".index(name), 9 * i, 0)).save(
                    cls.home / "train" / name / f"{i}.png")
        (cls.home / "text.txt").write_text("Two sides know something, and somebody compares. " * 40)
        subprocess.run([support.SCALETRAIN, "data", "tokenize", "text.txt", "--out", "tokens"],
                       cwd=cls.home, check=True, capture_output=True)
        case = cls("test_every_cell_has_an_outcome")
        case.folder = cls.home
        for name in ("images", "text"):
            case.run_scaletrain("launch", case.write(name))
        case.doCleanups()
        timm = cls.home / "timm"
        timm.mkdir()
        (timm / "model.safetensors").write_bytes(b"")
        (timm / "config.json").write_text(json.dumps({
            "architecture": "resnet18", "num_classes": 3, "pretrained_cfg": {
                "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225],
                "interpolation": "bilinear", "crop_pct": 1.0}}))
        hugging_face = cls.home / "hf"
        hugging_face.mkdir()
        (hugging_face / "model.safetensors").write_bytes(b"")
        (hugging_face / "tokenizer.json").write_text("{}")
        (hugging_face / "config.json").write_text(json.dumps({
            "model_type": "gpt2", "vocab_size": 300, "n_positions": 8, "n_embd": 8, "n_layer": 1,
            "n_head": 1, "dtype": "float32"}))

    def write(self, kind, name=None, model=None, tokens_folder=None, **changes):
        """The recipe of a kind; keys that are not written are those that data and weights know."""
        kinds = {
            "images": ({"name": "mlp", "hidden": 8}, {"train": {"folder": str(self.home / "train")},
                                                      "image_size": 8}),
            "text": ({"name": "gpt2", "positions": 8, "dim": 8, "depth": 1, "heads": 1},
                     {"train": {"tokens": str((tokens_folder or self.home / "tokens") / "train-000000.bin")}})}
        own, data = kinds[kind]
        path = self.folder / f"{name or kind}.json"
        path.write_text(json.dumps({
            "model": model or own, "data": {**data, **changes}, "batch": {"per_device": 4},
            "steps": 1, "threads": 1, "device": "cpu", "optimizer": {"name": "sgd", "lr": 0.1},
            "output": str(self.folder / (name or kind))}))
        return path

    def check(self, recipe, *sets, expect=0):
        flags = [word for one in sets for word in ("--set", one)]
        return self.run_scaletrain("recipe", "check", recipe, *flags, expect=expect).stderr

    def tokens_of(self, tokenizer=OTHER_TOKENIZER, **changes):
        """A copy of the tokens whose card says otherwise."""
        folder = self.folder / "other"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.home / "tokens", folder)
        card = folder / "train.tokens.json"
        own = json.loads(card.read_text())
        card.write_text(json.dumps({**own, "tokenizer": tokenizer, **changes}))
        return str(folder / "train-000000.bin")

    def fresh_run(self, row):
        if row == "number of classes":
            return self.check(self.write("images"), "model.num_classes=2", expect=2), \
                "/model/num_classes: 2 is less than the 3 classes of"
        if row == "vocabulary":
            return self.check(self.write("text"), "model.vocab_size=100", expect=65), \
                "is beyond the model's vocabulary of 100 (/model/vocab_size)"
        if row == "tokenizer":
            recipe = self.write("text", val={"tokens": self.tokens_of()})
            return self.check(recipe, expect=65), "was tokenized with tokenizer.json 000"
        self.assertEqual("token width", row)
        return self.check(self.write("text"), "data.token_bytes=4", expect=2), "token_bytes"

    def resume(self, row):
        of_text = row in ("vocabulary", "tokenizer", "token width")
        run = self.home / ("text" if of_text else "images")
        if row == "tokenizer":
            done = self.run_scaletrain("resume", run, "--allow", "data.train", "--set",
                                       f"data.train.tokens={self.tokens_of()}", expect=65)
            return done.stderr, "and the run was trained on tokens of bytes"
        change = {**IMAGE_KEYS, "vocabulary": "model.vocab_size=300",
                  "token width": "data.token_bytes=2"}[row]
        done = self.run_scaletrain("resume", run, "--set", change, expect=2)
        return done.stderr, "the recipe differs from the run that is continued: "

    def weights_of_a_run(self, row):
        if row in IMAGE_KEYS:
            return self.check(self.write("images"), f"model.weights={self.home / 'images'}",
                              "model.num_classes=3", IMAGE_KEYS[row]), WARNED[row]
        return self.weights_of_text(row, self.home / "text", 257)

    def weights_of_timm(self, row):
        recipe = self.write("images", model={"name": "resnet18", "num_classes": 3,
                                             "weights": str(self.home / "timm")})
        return self.check(recipe, IMAGE_KEYS[row]), WARNED[row]

    def weights_of_hf(self, row):
        if row == "dtype":
            (self.home / "hf/tokenizer.json").rename(self.folder / "aside")
            self.addCleanup((self.folder / "aside").rename, self.home / "hf/tokenizer.json")
            return self.check(self.write("text"), f"model.weights={self.home / 'hf'}",
                              "precision=bf16"), WARNED[row]
        return self.weights_of_text(row, self.home / "hf", 300)

    def weights_of_text(self, row, weights, vocabulary):
        sets = [f"model.weights={weights}"]
        if row == "tokenizer":
            sets.append(f"data.train.tokens={self.tokens_of()}")
            return self.check(self.write("text"), *sets, expect=65), \
                "the weights belong to the tokenizer"
        self.assertEqual("vocabulary", row)
        sets += ["model.vocab_size=400", 'model.weights.allow_other=["tokenizer"]']
        return self.check(self.write("text"), *sets, expect=65), \
            f"is of a model with {vocabulary} tokens, and /model/vocab_size is 400"

    def test_tokens_at_a_url_are_compared_by_the_worker_of_recipe_check(self):
        self.tokens_of()
        handler = functools.partial(QuietHandler, directory=str(self.folder))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                url = f"http://127.0.0.1:{server.server_address[1]}/other/train-000000.bin"
                sets = [f"model.weights={self.home / 'hf'}", f"data.train.tokens={url}"]
                flags = [word for one in sets for word in ("--set", one)]
                done = self.run_scaletrain("recipe", "check", self.write("text"), *flags,
                                           "--worker", expect=65)
            finally:
                server.shutdown()
                thread.join()
        self.assertIn("the weights belong to the tokenizer tokenizer.json ", done.stderr)
        self.assertIn(f"and the training tokens to {OTHER_TOKENIZER}", done.stderr)

    def test_the_tokenizer_of_a_run_outlives_the_card_of_its_tokens(self):
        shutil.copytree(self.home / "tokens", self.folder / "tokens")
        card = self.folder / "tokens/train.tokens.json"
        run = self.folder / "text"
        recipe = self.write("text", tokens_folder=self.folder / "tokens")
        self.run_scaletrain("launch", recipe)
        own = card.read_text()
        card.unlink()
        for steps in (2, 3):
            said = self.run_scaletrain("resume", run, "--set", f"steps={steps}", "--allow", "steps").stderr
            self.assertEqual(1, said.count("has no card: that its tokens are those of bytes, as "), said)
        card.write_text(json.dumps({**json.loads(own), "tokenizer": OTHER_TOKENIZER}))
        done = self.run_scaletrain("resume", run, "--set", "steps=4", "--allow", "steps", expect=65)
        self.assertIn("and the run was trained on tokens of bytes", done.stderr)
        done = self.run_scaletrain("checkpoint", "export", run, self.folder / "out", "--to", "huggingface",
                                   "--tokenizer", self.home / "hf", expect=2)
        self.assertIn("--tokenizer: is not bytes, of whose tokens the run is", done.stderr)

    def eval(self, row):
        if row == "number of classes":
            with tarfile.open(self.folder / "more.tar", "w") as tar:
                for name, content in (("a.png", (self.home / "train/a/0.png").read_bytes()),
                                      ("a.cls", b"3")):
                    member = tarfile.TarInfo(name)
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
            done = self.run_scaletrain("eval", self.home / "images", "--data",
                                       self.folder / "more.tar", expect=65)
            return done.stderr, "a.cls: label 3 is not in 0..2"
        changes = {"tokenizer": {}, "vocabulary": {"tokenizer": "bytes", "vocab_size": 300},
                   "token width": {"tokenizer": "bytes", "token_bytes": 4}}[row]
        done = subprocess.run([support.SCALETRAIN, "eval", self.home / "text", "--data",
                               self.tokens_of(**changes)], capture_output=True, text=True)
        self.assertIn(done.returncode, (2, 65), done.stderr)
        return done.stderr, {"tokenizer": "and the run was trained on tokens of bytes",
                             "vocabulary": "257 is less than the 300 tokens",
                             "token width": "token"}[row]

    def predict(self, row):
        """The command of a language model is generate."""
        run = self.folder / "generating"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.home / "text", run, symlinks=True)
        own, asked = OTHER_TOKENIZER, "bytes"
        if row == "vocabulary":
            asked = self.folder / "tokenizer.json"
            tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
            tokenizer.train_from_iterator([], tokenizers.trainers.BpeTrainer(
                show_progress=False, special_tokens=["<|endoftext|>", *map(str, range(299))]))
            tokenizer.save(str(asked))
            own = f"tokenizer.json {hashlib.sha256(asked.read_bytes()).hexdigest()}"
        card = run / "cards/train.json"
        card.write_text(json.dumps({**json.loads(card.read_text()), "tokenizer": own}))
        done = self.run_scaletrain("generate", run, "--tokenizer", asked, expect=2)
        return done.stderr, {"tokenizer": f"is bytes, and the run's tokenizer is {own}",
                             "vocabulary": "has 300 tokens, and the model has 257"}[row]

    def test_every_cell_has_an_outcome(self):
        find = {"fresh run": self.fresh_run, "resume": self.resume,
                "weights of a run": self.weights_of_a_run, "weights of timm": self.weights_of_timm,
                "weights of HF": self.weights_of_hf, "eval": self.eval, "predict": self.predict}
        for column in COLUMNS:
            for row in ROWS:
                with self.subTest(f"{row}, {column}"):
                    if (row, column) in ELSEWHERE:
                        continue
                    said, expected = find[column](row)
                    self.assertIn(expected, said)

    def test_what_is_known_is_taken_and_shown_once(self):
        done = self.run_scaletrain("recipe", "show", self.write("images"))
        self.assertEqual(3, json.loads(done.stdout)["model"]["num_classes"])
        self.assertEqual(f"model.num_classes: 3, as {self.home / 'train'} says\n", done.stderr)
        self.run_scaletrain("recipe", "check", self.write("images"), "--worker")
        recipe = self.write("text", model={"weights": {"path": str(self.home / "hf"),
                                                       "allow_other": ["tokenizer"]}})
        done = self.run_scaletrain("recipe", "show", recipe)
        model = json.loads(done.stdout)["model"]
        self.assertEqual(["gpt2", 300, 8, 8, 1, 1], [model[key] for key in (
            "name", "vocab_size", "positions", "dim", "depth", "heads")])
        self.assertEqual(1, done.stderr.count(" says\n"))
        self.assertEqual("", self.check(recipe).replace(done.stderr, ""))
        timm = json.loads((self.home / "timm/config.json").read_text())
        timm["pretrained_cfg"].update(mean=[0.5] * 3, interpolation="bicubic", crop_pct=0.5)
        folder = self.folder / "timm"
        shutil.copytree(self.home / "timm", folder)
        (folder / "config.json").write_text(json.dumps(timm))
        recipe = self.write("images", model={"weights": str(folder)})
        done = self.run_scaletrain("recipe", "show", recipe)
        shown = json.loads(done.stdout)
        self.assertEqual(("resnet18", [0.5] * 3, "bicubic", 16), (
            shown["model"]["name"], shown["data"]["normalize"]["mean"],
            shown["data"]["eval_filter"], shown["data"]["eval_resize"]))

    def test_a_difference_is_a_warning_once_and_in_the_summary(self):
        recipe = self.write("images", "tuned")
        flags = ["--set", f"model.weights={self.home / 'images'}", "--set", IMAGE_KEYS["mean"]]
        said = self.run_scaletrain("launch", recipe, *flags).stderr
        self.assertEqual(1, said.count("the weights were trained with " + WARNED["mean"]), said)
        self.assertIn("  weights      were trained with " + WARNED["mean"], said)
        said = self.check(recipe, *flags[1::2], 'model.weights.allow_other=["mean"]')
        self.assertNotIn("trained with", said)


if __name__ == "__main__":
    unittest.main()
