"""Our models start from what timm, torchvision and transformers save, tensor for tensor; what is made
to fit, and the learning rates by layer, are timm's."""

import json
import os
import pathlib
import tempfile
import unittest

import timm.optim
import torch
import transformers
from safetensors.torch import load_file, save_file
from timm.layers import resample_abs_pos_embed
from timm.models import adapt_input_conv

from parity import served
from parity.twins import IMAGE_SIZE, Twin, disturb, peer_model

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
SMALL_VIT = {"depth": 2, "dim": 48, "heads": 3}
SMALL_GPT2 = {"vocab_size": 50, "positions": 16, "dim": 32, "depth": 2, "heads": 4}
SMALL_LLAMA = {**SMALL_GPT2, "kv_heads": 2, "hidden": 64, "norm_eps": 1e-6}


def small_gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4))


def small_llama(tied):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=50, max_position_embeddings=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
        tie_word_embeddings=tied))


def contiguous(state):
    return {key: value.contiguous().clone() for key, value in state.items()}


class WeightsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.set_num_threads(1)
        torch.manual_seed(1)

    def run_program(self, *words, expect=0):
        status, printed, error = served.server("weights_program").run(words)
        self.assertEqual(expect, status, error)
        return printed if expect == 0 else error

    def loaded(self, model, options, weights, **sections):
        """What a model starts from, and the report."""
        twin = Twin(self.folder, model, {**options, "weights": weights}, **sections)
        out = self.folder / "loaded.safetensors"
        report = json.loads(self.run_program("load", twin.recipe, out))
        return {key: value.clone() for key, value in load_file(out).items()}, report

    def refused(self, model, options, weights):
        twin = Twin(self.folder, model, {**options, "weights": weights})
        return self.run_program("load", twin.recipe, self.folder / "none", expect=65)

    def path(self, name):
        return str(self.folder / name)

    def assert_same(self, ours, expected):
        self.assertEqual(sorted(ours), sorted(expected))
        for key, value in expected.items():
            self.assertTrue(torch.equal(ours[key], value.to(ours[key].dtype)), key)

    def test_every_layout_gives_the_same_tensors(self):
        def timm_folder(state):
            os.makedirs(self.path("timm"), exist_ok=True)
            save_file(contiguous(state), self.path("timm/model.safetensors"),
                      metadata={"format": "pt"})
            (self.folder / "timm/config.json").write_text('{"architecture": "vit"}')
            return self.path("timm")

        def torchvision_file(state):
            torch.save(state, self.path("resnet18-f37072fd.pth"))
            return self.path("resnet18-f37072fd.pth")

        def training_script(state):
            wrapped = {f"module.{key}": value for key, value in state.items()}
            averaged = {key: value + 1 for key, value in wrapped.items()}
            torch.save({"epoch": 3, "model": wrapped, "model_ema": averaged,
                        "optimizer": {"state": {}}}, self.path("checkpoint.pt"))
            return self.path("checkpoint.pt")

        def wrapped_safetensors(state):
            save_file({f"module.{key}": value for key, value in contiguous(state).items()},
                      self.path("wrapped.safetensors"))
            return self.path("wrapped.safetensors")

        for model, options in (("vit_tiny", SMALL_VIT), ("resnet18", {})):
            state = disturb(peer_model(model, **options).state_dict(),
                            torch.Generator().manual_seed(2))
            for write in (timm_folder, torchvision_file, training_script, wrapped_safetensors):
                with self.subTest(model=model, layout=write.__name__):
                    ours, report = self.loaded(model, options, write(state))
                    self.assert_same(ours, state)
                    self.assertEqual(sorted(report["taken"]), sorted(state))
        ours, _ = self.loaded("resnet18", {}, {"path": self.path("checkpoint.pt"),
                                               "part": "model_ema"})
        self.assert_same(ours, {key: value + 1 for key, value in state.items()})

    def test_half_precision_and_old_files_without_counts(self):
        state = peer_model("resnet18").state_dict()
        state = {key: value for key, value in state.items() if "num_batches" not in key}
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            with self.subTest(dtype):
                torch.save({key: value.to(dtype) for key, value in state.items()},
                           self.path("w.pth"))
                ours, report = self.loaded("resnet18", {}, self.path("w.pth"))
                self.assertEqual(20, len(report["missing"]))
                for key, value in state.items():
                    self.assertTrue(torch.equal(ours[key], value.to(dtype).float()), key)

    def test_folders_of_hugging_face(self):
        cases = {"gpt2": ("gpt2", SMALL_GPT2, small_gpt2()),
                 "llama": ("llama", SMALL_LLAMA, small_llama(False)),
                 "llama, tied": ("llama", {**SMALL_LLAMA, "tied": True}, small_llama(True))}
        for case, (name, options, peer) in cases.items():
            prefix = "transformer." if name == "gpt2" else ""
            expected = {key.removeprefix(prefix): value for key, value in peer.state_dict().items()
                        if key != "lm_head.weight" or case == "llama"}
            folder = self.path(case)
            peer.save_pretrained(folder)
            sharded = self.path(case + " in shards")
            peer.save_pretrained(sharded, max_shard_size="40KB")
            self.assertTrue(os.path.exists(sharded + "/model.safetensors.index.json"))
            body = self.path(case + " without a head")
            peer.base_model.save_pretrained(body)
            # As older versions wrote it: tied tensors twice, masks and frequencies as buffers.
            os.mkdir(self.path(case + " old"))
            state = dict(peer.state_dict())
            state["lm_head.weight"] = peer.lm_head.weight.detach()
            for block in range(2):
                if name == "gpt2":
                    state[f"{prefix}h.{block}.attn.bias"] = torch.ones(1, 1, 16, 16).bool()
                    state[f"{prefix}h.{block}.attn.masked_bias"] = torch.tensor(-1e4)
                else:
                    state[f"model.layers.{block}.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
            torch.save(state, self.path(case + " old") + "/pytorch_model.bin")
            for path in (folder, sharded, self.path(case + " old"), body):
                with self.subTest(path):
                    weights = {"path": path}
                    if path == body and case == "llama":
                        self.assertIn("1 missing (lm_head.weight)",
                                      self.refused(name, options, weights))
                        continue
                    ours, report = self.loaded(name, options, weights)
                    self.assert_same(ours, expected)
                    self.assertEqual(4 if "old" in path and name == "gpt2" else
                                     2 if "old" in path else 0, len(report["unused"]))

    def test_another_number_of_heads_is_refused(self):
        for name, options, peer in (("gpt2", {**SMALL_GPT2, "heads": 2}, small_gpt2()),
                                    ("llama", {**SMALL_LLAMA, "heads": 2, "kv_heads": 1},
                                     small_llama(False))):
            peer.save_pretrained(self.path(name))
            with self.subTest(name):
                self.assertRegex(
                    self.refused(name, options, self.path(name)),
                    r"config.json: has 4 attention heads \(/\w+\), and the model has 2\n"
                    "  set /model/heads to 4")

    def test_a_config_of_another_computation_is_refused_with_what_to_write(self):
        llama3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
                  "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8}
        folder = self.path("llama3")
        transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=50, max_position_embeddings=16, hidden_size=32, num_hidden_layers=2,
            num_attention_heads=4, num_key_value_heads=2, intermediate_size=64,
            rms_norm_eps=1e-3, rope_parameters=llama3)).save_pretrained(folder)
        self.assertIn(
            "config.json: is of a model with norm_eps 0.001, not 1e-06; rope_theta 500000.0, not "
            '10000.0; rope_scaling "llama3", not "none"; rope_factor 8.0, not 1.0; '
            "rope_original_positions 8, not 8192\n"
            "  set /model/norm_eps to 0.001, /model/rope_theta to 500000.0, /model/rope_scaling to "
            '"llama3", /model/rope_factor to 8.0, /model/rope_original_positions to 8; to keep '
            'the difference, add "allow_other": ["norm_eps", "rope_theta", "rope_scaling", "rope_factor", '
            '"rope_original_positions"] in /model/weights',
            self.refused("llama", SMALL_LLAMA, folder))
        said = {"norm_eps": 1e-3, "rope_theta": 5e5, "rope_scaling": "llama3", "rope_factor": 8,
                "rope_original_positions": 8}
        self.loaded("llama", {**SMALL_LLAMA, **said}, folder)
        self.loaded("llama", {**SMALL_LLAMA, **said, "rope_theta": 1e6},
                    {"path": folder, "allow_other": ["rope_theta"]})
        small_llama(True).save_pretrained(self.path("tied"))
        self.assertIn("is of a model with tied true, not false\n  set /model/tied to true",
                      self.refused("llama", SMALL_LLAMA, self.path("tied")))
        self.loaded("llama", SMALL_LLAMA, {"path": self.path("tied"), "allow_other": "tied",
                                           "allow_missing": "lm_head.weight"})
        peer = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, attn_pdrop=0.3,
            layer_norm_epsilon=1e-6))
        peer.save_pretrained(self.path("gpt2"))
        self.assertIn("config.json: /layer_norm_epsilon: is 1e-06, and 1e-05 is needed",
                      self.refused("gpt2", SMALL_GPT2, self.path("gpt2")))

    def test_a_shorter_context_and_a_longer_one(self):
        peer = small_gpt2()
        peer.save_pretrained(self.path("gpt2"))
        ours, report = self.loaded("gpt2", {**SMALL_GPT2, "positions": 8}, self.path("gpt2"))
        self.assertTrue(torch.equal(ours["wpe.weight"],
                                    peer.state_dict()["transformer.wpe.weight"][:8]))
        self.assertEqual({"wpe.weight": "the first 8 of 16 positions"}, report["adapted"])
        self.assertIn("has 16 positions (wpe.weight), and the model has 32\n  set /model/positions to "
                      "16 or less",
                      self.refused("gpt2", {**SMALL_GPT2, "positions": 32}, self.path("gpt2")))

    def test_positions_of_patches_are_interpolated_as_timm_does(self):
        for pool in ("token", "avg"):
            for size in (16, 28, 48):
                with self.subTest(pool=pool, size=size):
                    options = {**SMALL_VIT, "pool": pool}
                    peer = peer_model("vit_tiny", image_size=size, **options)
                    torch.save(peer.state_dict(), self.path("vit.pth"))
                    ours, report = self.loaded("vit_tiny", options, self.path("vit.pth"))
                    side = IMAGE_SIZE // 4
                    self.assertEqual({"pos_embed": f"{size // 4}x{size // 4} to {side}x{side} "
                                                   "patches"}, report["adapted"])
                    expected = resample_abs_pos_embed(
                        peer.pos_embed.detach(), (side, side),
                        num_prefix_tokens=1 if pool == "token" else 0)
                    torch.testing.assert_close(ours["pos_embed"], expected, rtol=0, atol=1e-6)

    def test_kernels_for_other_channels_are_timms(self):
        kernel = torch.randn(8, 3, 5, 5)
        save_file({"kernel": kernel}, self.path("kernel.safetensors"))
        for channels in (1, 3, 4, 5, 6, 12):
            with self.subTest(channels):
                out = self.path("adapted.safetensors")
                self.run_program("channels", self.path("kernel.safetensors"), out, channels)
                torch.testing.assert_close(load_file(out)["kernel"],
                                           adapt_input_conv(channels, kernel.clone()), rtol=1e-6, atol=1e-6)

    def test_a_model_of_grey_images_sees_colour_as_grey(self):
        state = peer_model("resnet18").state_dict()
        grey = dict(state, **{"conv1.weight": adapt_input_conv(1, state["conv1.weight"])})
        torch.save(grey, self.path("grey.pth"))
        ours, report = self.loaded("resnet18", {}, self.path("grey.pth"))
        self.assertEqual({"conv1.weight": "1 to 3 channels"}, report["adapted"])
        torch.testing.assert_close(ours["conv1.weight"].sum(1, keepdim=True), grey["conv1.weight"])

    def test_weights_of_colours_start_a_model_of_brightness(self):
        for name, options, kernel in (("resnet18", {}, "conv1.weight"),
                                      ("vit_tiny", SMALL_VIT, "patch_embed.proj.weight"),
                                      ("convnext_tiny", {}, "stem.0.weight"),
                                      ("mobilenet_v3_small", {}, "features.0.0.weight")):
            with self.subTest(name):
                state = peer_model(name, **options).state_dict()
                torch.save(state, self.path("colour.pth"))
                ours, report = self.loaded(name, {**options, "in_channels": 1},
                                           self.path("colour.pth"))
                self.assertEqual({kernel: "3 to 1 channels"}, report["adapted"])
                torch.testing.assert_close(ours[kernel], adapt_input_conv(1, state[kernel]))

    def test_a_new_head_is_the_one_without_weights(self):
        for model, options, head in (("resnet18", {}, "fc"), ("vit_tiny", SMALL_VIT, "head"),
                                     ("mobilenet_v3_small", {}, "classifier.3"),
                                     ("convnext_tiny", {}, "head.fc")):
            with self.subTest(model):
                peer = peer_model(model, num_classes=7, **options)
                torch.save(peer.state_dict(), self.path("w.pth"))
                ours, report = self.loaded(model, options, self.path("w.pth"))
                fresh = Twin(self.folder, model, options).initial_state()
                self.assertEqual([f"{head}.bias", f"{head}.weight"], report["initial"])
                expected = dict(peer.state_dict(), **{key: fresh[key] for key in report["initial"]})
                self.assert_same(ours, expected)

    def test_learning_rates_by_layer_are_timms(self):
        cases = {"vit_tiny": ("vit_tiny", {}), "vit_tiny, pooled": ("vit_tiny", {"pool": "avg"}),
                 "convnext_tiny": ("convnext_tiny", {}), "resnet18, d": ("resnet18", {"stem": "d"}),
                 "resnet50, d": ("resnet50", {"stem": "d"})}
        for case, (name, options) in cases.items():
            with self.subTest(case):
                with torch.device("meta"):
                    peer = peer_model(name, **options)
                names = {id(value): key for key, value in peer.named_parameters()}
                expected = {names[id(value)]: group["lr_scale"]
                            for group in timm.optim.param_groups_layer_decay(peer, layer_decay=0.7)
                            for value in group["params"]}
                twin = Twin(self.folder, name, options,
                            optimizer={"name": "sgd", "lr": 0.1, "layer_decay": 0.7})
                ours = dict(line.split(" ") for line in
                            self.run_program("scales", twin.recipe).splitlines())
                self.assertEqual(sorted(expected), sorted(ours))
                for key, scale in expected.items():
                    self.assertAlmostEqual(scale, float(ours[key]), delta=1e-12, msg=key)


if __name__ == "__main__":
    unittest.main()
