"""A GPT and a Llama that start from weights of transformers learn a text as it does there, at every
step: the same windows, weights, optimizer, schedule and clipping, two ranks here and one there.

The short form is a small model on this repository's pages; SCALETRAIN_LONG=1 trains the models of
recipes/text_gpt.json and text_llama.json for 300 steps on the text of scripts/prepare_text.sh.
"""

import json
import math
import os
import subprocess
import unittest

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from end_to_end import support

LONG = os.environ.get("SCALETRAIN_LONG") == "1"
WIDTH, DEPTH, POSITIONS, STEPS = (128, 4, 128, 300) if LONG else (32, 2, 32, 60)
BATCH, LR, DECAY, CLIP, WARMUP, LAST = 32, 2e-3, 0.1, 1.0, 20, 0.1
VOCABULARY = 257
COMMON = {"vocab_size": VOCABULARY, "positions": POSITIONS, "dim": WIDTH, "depth": DEPTH, "heads": 4}
FAMILIES = {
    "gpt2": ({"dropout": 0.0}, lambda: GPT2LMHeadModel(GPT2Config(
        vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=WIDTH, n_layer=DEPTH, n_head=4,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))),
    "llama": ({"kv_heads": 2, "hidden": 3 * WIDTH, "tied": True}, lambda: LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, hidden_size=WIDTH,
        num_hidden_layers=DEPTH, num_attention_heads=4, num_key_value_heads=2,
        intermediate_size=3 * WIDTH, rms_norm_eps=1e-5, tie_word_embeddings=True))),
}


def rate(step):
    if step < WARMUP:
        return LR * (step + 1) / WARMUP
    share = (step - WARMUP) / (STEPS - WARMUP)
    return LR * (LAST + (1 - LAST) * (1 + math.cos(math.pi * share)) / 2)


def trained_by_pytorch(model, tokens, targets):
    """The loss of each step."""
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=(0.9, 0.95))
    losses = []
    model.train()
    for step, (batch, target) in enumerate(zip(tokens.split(BATCH), targets.split(BATCH))):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        loss = torch.nn.functional.cross_entropy(model(batch).logits.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


class TextCurveTest(support.RunTestCase):
    @classmethod
    def setUpClass(cls):
        pass  # no digits

    def tokens(self):
        """The files of a text."""
        if LONG:
            subprocess.run([support.ROOT / "scripts/prepare_text.sh", self.folder / "text"], check=True,
                           timeout=600)
        else:
            pages = sorted((support.ROOT / "docs").glob("*.md"))
            self.run_scaletrain("data", "tokenize", *pages, "--out", self.folder / "text")
        return [str(path) for path in sorted((self.folder / "text").glob("train-*.bin"))]

    def windows(self, recipe):
        """Tokens and targets of all steps, [steps * batch, positions] each."""
        lines = subprocess.run([support.BIN / "data_program", "trained", recipe, str(STEPS)],
                               check=True, capture_output=True, text=True, timeout=300).stdout
        pairs = [[[int(word) for word in side.split()] for side in line.split("->")]
                 for line in lines.splitlines()]
        return torch.tensor([pair[0] for pair in pairs]), torch.tensor([pair[1] for pair in pairs])

    def test_the_curve_is_that_of_transformers(self):
        torch.set_num_threads(1)
        files = self.tokens()
        for name, (options, make) in FAMILIES.items():
            with self.subTest(name):
                torch.manual_seed(4)
                peer = make()
                peer.save_pretrained(self.folder / f"{name}-start")
                recipe = self.recipe(
                    name, model={"name": name, **COMMON, **options,
                                 "weights": str(self.folder / f"{name}-start")},
                    data={"train": {"tokens": files}}, batch={"global": BATCH, "per_device": BATCH // 2},
                    steps=STEPS, precision="fp32", clip={"norm": CLIP}, log={"every": {"steps": 1}},
                    optimizer={"name": "adamw", "lr": LR, "weight_decay": DECAY, "beta2": 0.95},
                    schedule={"warmup": {"steps": WARMUP},
                              "decay": {"name": "cosine", "final_factor": LAST}})
                self.run_scaletrain("launch", "--nproc", 2, recipe)
                ours = [line["loss"] for line in support.records(self.folder / name, "train")]
                expected = trained_by_pytorch(peer, *self.windows(recipe))
                self.assertEqual(STEPS, len(ours))
                self.assertLess(expected[-1], 0.75 * expected[0])  # it learns
                worst = max(abs(a - b) / b for a, b in zip(ours, expected))
                print(json.dumps({"model": name, "steps": STEPS, "first": ours[0], "last": ours[-1],
                                  "largest difference": worst}))
                self.assertLess(worst, 0.01)


if __name__ == "__main__":
    unittest.main()
