"""`scaletrain checkpoint export`: timm, torchvision, transformers and PyTorch open what it writes
and compute what our models compute."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import safetensors.torch
import timm
import torch
import torchvision
from safetensors.torch import load_file
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer

from launcher import checkpoint_support
from parity import served, twins

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "scaletrain"
LONG = os.environ.get("SCALETRAIN_LONG") == "1"
VIT = {"dim": 48, "depth": 2, "heads": 2}
TOKENS = {"vocab_size": 60, "positions": 16, "dim": 32, "depth": 2, "heads": 4}
LLAMA = {**TOKENS, "kv_heads": 2}
TIMM = [("vit_tiny", {**VIT, "mlp_ratio": 3.0}),
        ("vit_tiny", {**VIT, "pool": "avg", "layer_scale": 0.1, "patch_size": 8}),
        ("resnet18", {}),
        ("resnet18", {"norm": "group", "stem": "d"}),
        *([("resnext50_32x4d", {"stem": "d"})] if LONG else []),
        ("convnext_tiny", {"layer_scale": 0.5}),
        ("vit_tiny", {**VIT, "in_channels": 1}),
        ("resnet18", {"stem": "d", "in_channels": 1})]
TORCHVISION = [("resnet18", {}), *([("wide_resnet50_2", {})] if LONG else []), ("mobilenet_v3_small", {})]
LANGUAGE = [("gpt2", {**TOKENS, "mlp_ratio": 2.5}),
            ("llama", LLAMA),
            ("llama", {**LLAMA, "tied": True, "hidden": 40, "rope_scaling": "linear",
                       "rope_factor": 2.0, "rope_theta": 500.0}),
            ("llama", {**LLAMA, "rope_scaling": "llama3", "rope_factor": 8.0, "rope_low": 1.0,
                       "rope_high": 4.0, "rope_original_positions": 8, "norm_eps": 1e-4}),
            ("mixtral", {**LLAMA, "hidden": 40, "experts": 4, "rope_theta": 500.0}),
            ("mixtral", {**LLAMA, "hidden": 24, "experts": 3, "experts_per_token": 1, "tied": True,
                         "router_aux_loss": 0.0, "capacity_factor": 0.5})]


def run(*arguments, status=0):
    done = subprocess.run([PROGRAM, "checkpoint", *map(str, arguments)], capture_output=True,
                          text=True, timeout=600)
    if done.returncode != status:
        raise AssertionError(f"{done.returncode} instead of {status}: {done.stderr}")
    return done.stdout if status == 0 else done.stderr


class Exported:
    """A checkpoint of a disturbed model with two classes, and what our model makes of `inputs`."""

    def __init__(self, folder, model, options, seed=1, **sections):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
        is_language_model = "vocab_size" in options
        classes = {} if is_language_model else {"num_classes": 2}
        self.twin = twin = twins.Twin(self.folder, model, {**options, **classes}, **sections)
        generator = torch.Generator().manual_seed(seed)
        self.state = twins.disturb(twin.initial_state(), generator)
        self.inputs = (torch.randint(0, 60, (3, 16), generator=generator) if is_language_model
                       else twins.images(generator, 4, channels=options.get("in_channels", 3)))
        self.logits = twin.logits(self.state, self.inputs).clone()  # the file is written again
        state = checkpoint_support.state_of(3, epoch=0, step_in_epoch=3)
        self.checkpoint = checkpoint_support.write_checkpoint(
            self.folder / "run", state, twin.recipe.read_text(),
            model=safetensors.torch.save({key: value.contiguous() for key, value in
                                          self.state.items()}))

    def export(self, to, *flags):
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"
        run("export", self.folder / "run", out, "--to", to, *flags)
        return out


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def exported(self, model, options, **sections):
        return Exported(self.folder, model, options, **sections)

    def compare(self, expected, model, inputs, tolerance=1e-5):
        with torch.no_grad():
            found = model(inputs)
        found = getattr(found, "logits", found)
        largest = (found - expected).abs().max().item() / expected.abs().max().item()
        self.assertLess(largest, tolerance)

    def test_timm_opens_a_folder(self):
        for name, options in TIMM:
            with self.subTest(name, options=options):
                case = self.exported(name, options)
                out = case.export("timm")
                model = timm.create_model(f"local-dir:{out}", pretrained=True).eval()
                self.compare(case.logits, model, case.inputs)
                self.assertEqual(["zero", "one"], model.pretrained_cfg["label_names"])
                # Another head and another image size, as who fine-tunes it asks for them.
                timm.create_model(f"local-dir:{out}", pretrained=True, num_classes=5)

    def test_timm_preprocesses_as_we_do(self):
        data = {"train": {"shards": "unused.tar"}, "image_size": 32, "eval_resize": 37,
                "eval_filter": "bicubic", "normalize": {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 1]}}
        out = self.exported("vit_tiny", VIT, data=data).export("timm")
        model = timm.create_model(f"local-dir:{out}", pretrained=True)
        found = timm.data.resolve_model_data_config(model)
        self.assertEqual((3, 32, 32), tuple(found["input_size"]))
        self.assertEqual(("bicubic", "center"), (found["interpolation"], found["crop_mode"]))
        self.assertEqual(([0.1, 0.2, 0.3], [0.4, 0.5, 1]), (list(found["mean"]), list(found["std"])))
        resize = timm.data.create_transform(**found).transforms[0]
        self.assertEqual(37, resize.size)

    def test_torchvision_loads_the_state(self):
        for name, options in TORCHVISION:
            with self.subTest(name):
                case = self.exported(name, options)
                out = case.export("torchvision")
                model = torchvision.models.get_model(name, weights=None, num_classes=2)
                model.load_state_dict(torch.load(out / "model.pth", weights_only=True))
                self.compare(case.logits, model.eval(), case.inputs)
                config = json.loads((out / "config.json").read_text())
                self.assertEqual((name, ["zero", "one"]),
                                 (config["architecture"], config["label_names"]))

    def test_transformers_opens_a_folder(self):
        for name, options in LANGUAGE:
            with self.subTest(name, options=options):
                case = self.exported(name, options)
                model, report = AutoModelForCausalLM.from_pretrained(
                    case.export("huggingface"), output_loading_info=True)
                self.assertFalse(report["missing_keys"] or report["unexpected_keys"] or
                                 report["mismatched_keys"], report)
                self.compare(case.logits, model.eval(), case.inputs)

    def test_a_mixtral_with_a_router_bias_is_not_exported_to_huggingface(self):
        case = self.exported("mixtral", {**LLAMA, "hidden": 40, "router_bias_rate": 0.1})
        self.assertIn("has no router bias",
                      run("export", case.folder / "run", case.folder / "out", "--to", "huggingface",
                          status=2))
        state = load_file(case.export("safetensors") / "model.safetensors")
        self.assertEqual(sorted(case.state), sorted(state))

    def test_a_tokenizer_comes_along(self):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator(["the cat sat on the mat"], trainers.BpeTrainer(
            vocab_size=300, show_progress=False, special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        tokenizer.save(str(self.folder / "tokenizer.json"))
        text = self.folder / "text.jsonl"
        text.write_text(json.dumps({"text": "the cat sat on the mat " * 20}) + "\n")
        subprocess.run([PROGRAM, "data", "tokenize", text, "--out", self.folder, "--tokenizer",
                        self.folder / "tokenizer.json"], check=True, capture_output=True)
        data = {"train": {"tokens": str(self.folder / "train-000000.bin")}, "context": 8}
        out = self.exported("gpt2", {**TOKENS, "vocab_size": tokenizer.get_vocab_size()},
                            data=data).export("huggingface")
        found = AutoTokenizer.from_pretrained(out)
        self.assertEqual(tokenizer.encode("the cat").ids, found("the cat")["input_ids"])
        end = tokenizer.token_to_id("<|endoftext|>")
        self.assertEqual(end, found.eos_token_id)
        self.assertEqual(end, AutoModelForCausalLM.from_pretrained(out).config.eos_token_id)

    def test_plain_files_hold_any_model(self):
        case = self.exported("mlp", {"hidden": 16})
        states = [torch.load(case.export("pt") / "model.pt", weights_only=True),
                  load_file(case.export("safetensors") / "model.safetensors")]
        for state in states:
            self.assertEqual(sorted(case.state), sorted(state))
            for name, tensor in case.state.items():
                self.assertTrue(torch.equal(tensor, state[name]), name)

    def test_smaller_types_cost_what_their_rounding_does(self):
        for name, options in [("vit_tiny", VIT), ("gpt2", TOKENS)]:
            case = self.exported(name, options)
            to = "huggingface" if name == "gpt2" else "timm"
            # Rounding moves a weight by up to 2^-9 and 2^-12 of itself, or 1/254 of the largest of
            # its output; found were 0.003, 0.0008 and 0.006 of the largest logit.
            for dtype, stored, tolerance in [("bf16", torch.bfloat16, 0.02),
                                             ("fp16", torch.float16, 0.004)]:
                with self.subTest(name, dtype=dtype):
                    out = case.export(to, "--dtype", dtype)
                    state = load_file(out / "model.safetensors")
                    self.assertEqual({stored}, {tensor.dtype for tensor in state.values()})
                    for key, tensor in state.items():
                        self.assertTrue(torch.equal(
                            case.state[key.removeprefix("transformer.")].to(stored), tensor), key)
                    model = (AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
                             if to == "huggingface"
                             else timm.create_model(f"local-dir:{out}", pretrained=True))
                    self.compare(case.logits, model.eval(), case.inputs, tolerance)
            with self.subTest(name, dtype="int8"):
                state = torch.load(case.export("pt", "--dtype", "int8") / "model.pt",
                                   weights_only=True)
                whole = {key: tensor for key, tensor in state.items() if not key.endswith("_scale")}
                self.assertEqual(sorted(case.state), sorted(whole))
                products = [key for key, tensor in whole.items() if tensor.dtype == torch.int8]
                self.assertGreater(len(products), 8)
                for key in products:
                    weight, scale = case.state[key], state[f"{key}_scale"]
                    outputs = 1 if ".c_" in key else 0
                    others = [i for i in range(weight.dim()) if i != outputs]
                    torch.testing.assert_close(scale, weight.abs().amax(others, keepdim=True) / 127)
                    whole[key] = whole[key] * scale
                    self.assertLess(((whole[key] - weight).abs() / scale).max().item(), 0.50001)
                logits = case.twin.logits(whole, case.inputs)
                self.compare(case.logits, lambda _: logits, None, 0.03)
                for to in ("pt", "safetensors"):
                    self.compare_read(case, name, options, whole,
                                      case.export(to, "--dtype", "int8"))

    def compare_read(self, case, name, options, expected, export):
        """An import of it and a model that starts from it have the products, bit for bit."""
        imported = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "imported"
        run("import", export, imported)
        classes = {} if "vocab_size" in options else {"num_classes": 2}
        twin = twins.Twin(case.folder, name, {**options, **classes, "weights": str(export)})
        started = case.folder / "started.safetensors"
        served.run("weights_program", "load", twin.recipe, started)
        for path in (imported / "checkpoints/latest/model.safetensors", started):
            state = load_file(path)
            self.assertEqual(sorted(expected), sorted(state))
            for key, tensor in expected.items():
                self.assertTrue(torch.equal(tensor, state[key]), f"{path} {key}")

    def test_what_cannot_be_exported_is_refused_and_leaves_nothing(self):
        mlp = self.exported("mlp", {"hidden": 16})
        out = self.folder / "refused"
        for to, flags, message in [
                ("timm", [], "timm has no mlp with these tensors"),
                ("torchvision", [], "torchvision has no mlp with these tensors"),
                ("huggingface", [], "transformers has no mlp with these tensors"),
                ("onnx", [], "--to"),
                ("timm", ["--dtype", "int8"], "timm cannot load int8 weights with scales")]:
            self.assertIn(message, run("export", mlp.folder / "run", out, "--to", to, *flags, status=2))
        self.assertIn("absent", run("export", self.folder / "absent", out, "--to", "pt", status=65))
        self.assertFalse(out.exists())
        state = {key: value * 1e9 for key, value in mlp.state.items()}
        checkpoint_support.write_checkpoint(
            self.folder / "large", checkpoint_support.state_of(3, epoch=0, step_in_epoch=3),
            (mlp.folder / "recipe.json").read_text(), model=safetensors.torch.save(state))
        self.assertIn("which is outside the range of F16", run(
            "export", self.folder / "large", out, "--to", "pt", "--dtype", "fp16", status=65))
        self.assertFalse(out.exists())
        kept = mlp.export("pt")
        self.assertIn("--overwrite", run("export", mlp.folder / "run", kept, "--to", "pt", status=2))
        run("export", mlp.folder / "run", kept, "--to", "safetensors", "--overwrite")
        self.assertEqual(["classes.json", "model.safetensors", "recipe.json"],
                         sorted(path.name for path in kept.iterdir()))


if __name__ == "__main__":
    unittest.main()
