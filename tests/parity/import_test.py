"""`scaletrain checkpoint import`: what timm, torchvision, transformers and PyTorch save computes
the same here."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig,
                          MixtralForCausalLM)

from parity import twins

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "scaletrain"
LONG = os.environ.get("SCALETRAIN_LONG") == "1"
END = 4
GPT2 = GPT2Config(vocab_size=60, n_positions=16, n_embd=32, n_layer=2, n_head=4, n_inner=80,
                  bos_token_id=END, eos_token_id=END)
LLAMA = {"vocab_size": 60, "max_position_embeddings": 16, "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
         "rms_norm_eps": 1e-4, "bos_token_id": END, "eos_token_id": END}
LLAMAS = [LlamaConfig(**LLAMA),
          LlamaConfig(**LLAMA, tie_word_embeddings=True,
                      rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}),
          LlamaConfig(**LLAMA, rope_parameters={
              "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 8, "rope_theta": 10000.0})]
MIXTRALS = [MixtralConfig(**LLAMA, num_local_experts=4),
            MixtralConfig(**LLAMA, num_local_experts=3, num_experts_per_tok=1,
                          tie_word_embeddings=True)]
TIMM = [("vit_tiny_patch16_224", {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2,
                                  "num_heads": 2, "init_values": 0.1}),
        ("vit_small_patch16_224", {"img_size": 32, "embed_dim": 48, "depth": 2, "num_heads": 2,
                                   "class_token": False, "global_pool": "avg"}),
        ("vit_tiny_patch16_224", {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2,
                                  "num_heads": 2, "in_chans": 1}),
        ("resnet18d", {}), *([("resnet34", {})] if LONG else []), ("convnext_tiny", {})]


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600)
    if done.returncode != status:
        raise AssertionError(f"{done.returncode} instead of {status}: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def disturbed(model):
    model.load_state_dict(twins.disturb(model.state_dict(), torch.Generator().manual_seed(1)))
    return model.eval()


class ImportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def new_path(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"

    def imported(self, source, *flags):
        out = self.new_path()
        run("checkpoint", "import", source, out, *flags)
        run("checkpoint", "verify", out)
        return out

    def compare(self, model, inputs, out):
        """The imported model's logits are those of the model in Python."""
        checkpoint = out / "checkpoints" / "latest"
        twin = twins.Twin(self.folder, "mlp")
        twin.recipe = checkpoint / "recipe.json"
        found = twin.logits(load_file(checkpoint / "model.safetensors"), inputs)
        with torch.no_grad():
            expected = model(inputs)
        expected = getattr(expected, "logits", expected)
        self.assertLess((found - expected).abs().max().item() / expected.abs().max().item(), 1e-5)
        return json.loads((checkpoint / "recipe.json").read_text())

    def test_timm(self):
        for name, options in TIMM:
            images = twins.images(torch.Generator().manual_seed(2), 3,
                                  channels=options.get("in_chans", 3))
            with self.subTest(name):
                model = disturbed(timm.create_model(name, num_classes=3, **options))
                model.pretrained_cfg |= {"crop_pct": 0.8, "interpolation": "bilinear",
                                         "mean": (0.5, 0.4, 0.3)}
                config = {"label_names": ["a", "b", "c"], "model_args": options}
                source = self.new_path()
                timm.models.save_for_hf(model, source, model_config=config)
                size = [] if options else ["--set", "data.image_size=32", "--set",
                                           "data.eval_resize=40"]
                out = self.imported(source, *size)
                recipe = self.compare(model, images, out)
                classes = json.loads((out / "checkpoints/latest/classes.json").read_text())
                self.assertEqual(["a", "b", "c"], classes)
                self.assertEqual((32, 40, "bilinear"), (
                    recipe["data"]["image_size"], recipe["data"]["eval_resize"],
                    recipe["data"]["eval_filter"]))
                # Of one channel timm writes the mean of the three.
                torch.testing.assert_close(
                    torch.tensor(recipe["data"]["normalize"]["mean"]),
                    torch.full((3,), 0.4) if "in_chans" in options
                    else torch.tensor([0.5, 0.4, 0.3]))

    def test_torchvision(self):
        images = twins.images(torch.Generator().manual_seed(2), 3)
        for name in ["resnext50_32x4d", "mobilenet_v3_large"] if LONG else ["resnet18", "mobilenet_v3_small"]:
            with self.subTest(name):
                model = disturbed(torchvision.models.get_model(name, weights=None, num_classes=5))
                path = self.folder / f"{name}.pth"
                torch.save({"model": model.state_dict(), "epoch": 3}, path)
                out = self.imported(path, "--model", name, "--set", "data.image_size=32")
                recipe = self.compare(model, images, out)
                self.assertEqual(5, recipe["model"]["num_classes"])

    def test_transformers(self):
        tokens = torch.randint(0, 60, (3, 16), generator=torch.Generator().manual_seed(2))
        for model in [GPT2LMHeadModel(GPT2), *map(LlamaForCausalLM, LLAMAS),
                      *map(MixtralForCausalLM, MIXTRALS)]:
            with self.subTest(model.config.model_type):
                model = disturbed(model)
                model.tie_weights()
                source = self.new_path()
                model.save_pretrained(source)
                self.compare(model, tokens, self.imported(source))
                # As older versions and the files of OpenAI have them.
                config = json.loads((source / "config.json").read_text())
                rope = config.pop("rope_parameters", None)
                if rope:
                    config["rope_theta"] = rope.pop("rope_theta")
                    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
                (source / "config.json").write_text(json.dumps(config))
                if config["model_type"] == "mixtral":
                    continue  # whose names in memory are not those of its files
                state = {key.removeprefix("transformer."): value
                         for key, value in model.state_dict().items()}
                if config["model_type"] == "gpt2":
                    state["h.0.attn.bias"] = torch.ones(1, 1, 16, 16)
                (source / "model.safetensors").unlink()
                torch.save(state, source / "pytorch_model.bin")
                self.compare(model, tokens, self.imported(source))

    def test_half_precision_becomes_single(self):
        tokens = torch.randint(0, 60, (3, 16), generator=torch.Generator().manual_seed(2))
        model = disturbed(GPT2LMHeadModel(GPT2)).to(torch.bfloat16)
        source = self.new_path()
        model.save_pretrained(source)
        self.compare(model.float(), tokens, self.imported(source))

    def test_pictures_are_labelled_by_an_imported_model(self):
        name, options = TIMM[0]
        model = disturbed(timm.create_model(name, num_classes=3, **options))
        model.pretrained_cfg |= {"crop_pct": 1.0, "mean": (0.5, 0.4, 0.3), "std": (0.2, 0.3, 0.4)}
        source = self.new_path()
        timm.models.save_for_hf(model, source, model_config={
            "label_names": ["ant", "bee", "cat"], "model_args": options})
        pixels = torch.randint(256, (4, 32, 32, 3), generator=torch.Generator().manual_seed(5),
                               dtype=torch.uint8)
        pictures = [self.folder / f"{i}.png" for i in range(len(pixels))]
        for path, picture in zip(pictures, pixels):
            Image.fromarray(picture.numpy()).save(path)
        lines = run("predict", self.imported(source), *pictures, "--json", "--top", 3).splitlines()

        images = (pixels / 255 - torch.tensor([0.5, 0.4, 0.3])) / torch.tensor([0.2, 0.3, 0.4])
        with torch.no_grad():
            expected = model(images.permute(0, 3, 1, 2)).softmax(1)
        self.assertEqual(len(pictures), len(lines))
        for line, row in zip(map(json.loads, lines), expected):
            found = {each["label"]: each["probability"] for each in line["predictions"]}
            for label, probability in zip(["ant", "bee", "cat"], row.tolist()):
                self.assertAlmostEqual(probability, found[label], places=5)

    def test_text_goes_on_from_an_imported_model(self):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator(["the cat sat on the mat"], trainers.BpeTrainer(
            vocab_size=300, show_progress=False, special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        config = {**GPT2.to_dict(), "vocab_size": tokenizer.get_vocab_size(), "eos_token_id": 0}
        source = self.new_path()
        disturbed(GPT2LMHeadModel(GPT2Config(**config))).save_pretrained(source)
        tokenizer.save(str(source / "tokenizer.json"))
        out = self.imported(source)
        shutil.rmtree(source)
        text = run("generate", out, "--prompt", "the cat", "--temperature", 0, "--max-tokens", 5)
        self.assertGreater(len(text), 1)

    def test_what_is_exported_is_imported_again(self):
        model = disturbed(timm.create_model("vit_tiny_patch16_224", num_classes=3, **TIMM[0][1]))
        source = self.new_path()
        timm.models.save_for_hf(model, source, model_config={"model_args": TIMM[0][1]})
        first = self.imported(source)
        for to in ["timm", "pt", "safetensors"]:
            with self.subTest(to):
                exported = self.new_path()
                run("checkpoint", "export", first, exported, "--to", to)
                again = self.imported(exported)
                self.assertTrue(run("checkpoint", "diff", first, again).startswith("0 of "))

    def test_what_does_not_fit_is_refused_and_leaves_nothing(self):
        model = torchvision.models.resnet18(weights=None, num_classes=3)
        path = self.folder / "resnet18.pth"
        torch.save(model.state_dict(), path)
        out = self.folder / "refused"
        for flags, message, status in [
                ([], "name the model: --model resnet18", 2),
                (["--model", "resnet81"], "resnet18", 2),
                (["--model", "resnet34"], "does not fit the model", 65),
                (["--model", "resnet18", "--set", "model.num_classes=4"], "does not fit", 65),
                (["--model", "resnet18", "--set", "model.depth=4"], "--set KEY=VALUE", 2)]:
            with self.subTest(flags):
                self.assertIn(message, run("checkpoint", "import", path, out, *flags, status=status))
        state = model.state_dict()
        state["fc.bias"][0] = float("nan")
        torch.save(state, path)
        self.assertIn("not finite", run("checkpoint", "import", path, out, "--model", "resnet18",
                                        status=65))
        source = self.new_path()
        GPT2LMHeadModel(GPT2).save_pretrained(source)
        config = json.loads((source / "config.json").read_text())
        (source / "config.json").write_text(json.dumps({**config, "activation_function": "relu"}))
        self.assertIn('config.json: /activation_function: is "relu", and "gelu_new" or',
                      run("checkpoint", "import", source, out, status=65))
        self.assertFalse(out.exists())
        self.assertEqual([], list(self.folder.glob("*.tmp.*")))

    def test_imported_weights_are_no_training_to_resume(self):
        path = self.folder / "resnet18.pth"
        torch.save(torchvision.models.resnet18(weights=None, num_classes=3).state_dict(), path)
        out = self.imported(path, "--model", "resnet18", "--set", "data.image_size=32")
        self.assertIn("imported-without-data-000000.tar", run("resume", out, status=65))
        recipe = self.folder / "recipe.json"
        shard = self.folder / "a.tar"
        shard.write_bytes(b"\0" * 1024)
        recipe.write_text(json.dumps({
            "model": {"name": "resnet18", "num_classes": 3}, "steps": 1, "optimizer": {
                "name": "sgd", "lr": 0.1}, "output": str(self.folder / "run"),
            "data": {"train": {"shards": str(shard)}, "image_size": 32}, "batch": {"per_device": 2}}))
        self.assertIn("has imported weights and no training state to resume",
                      run("launch", "--resume", out, recipe, status=2))
        self.assertIn("exists already", run("checkpoint", "import", path, out, "--model", "resnet18",
                                              status=2))


if __name__ == "__main__":
    unittest.main()
