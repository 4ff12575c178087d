"""Our GPT-2, Llama and Mixtral have the tensors, initialisation, logits, gradients and training of
transformers'."""

import functools
import os
import tempfile
import unittest

import torch
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MixtralConfig,
                          MixtralForCausalLM)

from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from parity.twins import Twin, disturb

VOCABULARY = 96
POSITIONS = 32
END = 7  # of a document
COMMON = {"vocab_size": VOCABULARY, "positions": POSITIONS, "dim": 64, "depth": 3, "heads": 4}
STEPS = 100 if os.environ.get("SCALETRAIN_LONG") == "1" else 40
LR = 3e-3

# What a recipe says of llama's positions, and what a configuration of transformers does.
SCALINGS = {
    "linear": ({"rope_scaling": "linear", "rope_factor": 4.0},
               {"rope_type": "linear", "factor": 4.0}),
    # Short enough that all three kinds of pairs are there: fast, slow and between.
    "llama3": ({"rope_theta": 100.0, "rope_scaling": "llama3", "rope_factor": 8.0, "rope_low": 1.0,
                "rope_high": 4.0, "rope_original_positions": 16},
               {"rope_theta": 100.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 16}),
}


def gpt2_peer():
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=COMMON["dim"],
        n_layer=COMMON["depth"], n_head=COMMON["heads"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))


def llama_peer(options, rope):
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, hidden_size=COMMON["dim"],
        num_hidden_layers=COMMON["depth"], num_attention_heads=COMMON["heads"],
        num_key_value_heads=options["kv_heads"], intermediate_size=options["hidden"],
        rms_norm_eps=1e-5, tie_word_embeddings=options.get("tied", False),
        rope_parameters={"rope_theta": 10000.0, "rope_type": "default", **rope}))


def mixtral_peer(options):
    return MixtralForCausalLM(MixtralConfig(
        vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, hidden_size=COMMON["dim"],
        num_hidden_layers=COMMON["depth"], num_attention_heads=COMMON["heads"],
        num_key_value_heads=options["kv_heads"], intermediate_size=options["hidden"],
        tie_word_embeddings=options.get("tied", False), num_local_experts=options["experts"],
        num_experts_per_tok=options["experts_per_token"], attn_implementation="eager",
        router_aux_loss_coef=options["router_aux_loss"],
        rope_parameters={"rope_theta": 10000.0, "rope_type": "default"}))


STATES = {}  # recipe -> what our model starts from


class Pair:
    """One of our models with its twin in transformers."""

    def __init__(self, folder, name, options, peer, prefix):
        self.twin = Twin(folder, name, {**COMMON, **options},
                         optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1})
        self.peer = peer.eval()
        self.prefix = prefix  # of the names in Python, which those of published files are without

    def initial_state(self):
        """Of our model; made once for each recipe."""
        key = self.twin.recipe.read_text()
        if key not in STATES:
            STATES[key] = {name: value.clone() for name, value in self.twin.initial_state().items()}
        return STATES[key]

    def peer_tensors(self):
        """By the names of published files, without a tied head."""
        return {name.removeprefix(self.prefix): value
                for name, value in self.peer.named_parameters()}

    def load(self, state):
        missing = self.peer.load_state_dict(
            {name if name.startswith("lm_head") else self.prefix + name: value
             for name, value in state.items()}, strict=False)
        assert missing.missing_keys in ([], ["lm_head.weight"]), missing
        assert not missing.unexpected_keys, missing
        self.peer.tie_weights()

    def peer_gradients(self):
        return {name: value.grad for name, value in self.peer_tensors().items()}

    def peer_loss(self, tokens, targets, **more):
        logits = self.peer(tokens, **more).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


class ExpertsPair(Pair):
    """Mixtral's experts are two tensors of all of them in Python, and three of each in its files."""

    PARTS = ("w1", "w3")

    def split(self, tensors):
        result = {}
        for name, value in tensors.items():
            name = name.replace(".mlp.", ".block_sparse_moe.")
            experts, _, kind = name.rpartition(".")
            if kind == "gate_up_proj":
                for expert, both in enumerate(value):
                    for part, half in zip(self.PARTS, both.chunk(2)):
                        result[f"{experts}.{expert}.{part}.weight"] = half
            elif kind == "down_proj":
                for expert, down in enumerate(value):
                    result[f"{experts}.{expert}.w2.weight"] = down
            else:
                result[name] = value
        return result

    def initial_state(self):
        """Of our model; made once for each recipe."""
        key = self.twin.recipe.read_text()
        if key not in STATES:
            STATES[key] = {name: value.clone() for name, value in self.twin.initial_state().items()}
        return STATES[key]

    def peer_tensors(self):
        return self.split(super().peer_tensors())

    def peer_gradients(self):
        return self.split({name: value.grad for name, value in super().peer_tensors().items()})

    def load(self, state):
        with torch.no_grad():  # parts of what the peer has
            for name, value in self.peer_tensors().items():
                value.copy_(state[name])
        assert self.peer_tensors().keys() == state.keys()

    def peer_loss(self, tokens, targets, **more):
        # Not by the whole model, which takes a mask of blocks for one of padding.
        output = self.peer.model(tokens, output_router_logits=True, **more)
        logits = self.peer.lm_head(output.last_hidden_state)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return loss + self.peer.router_aux_loss_coef * load_balancing_loss_func(
            output.router_logits, self.peer.num_experts, self.peer.num_experts_per_tok)


def gpt2(folder):
    return Pair(folder, "gpt2", {"dropout": 0.0}, gpt2_peer(), "transformer.")


def llama(folder, rope=None, **options):
    ours, peers = SCALINGS[rope] if rope else ({}, {})
    options = {"kv_heads": 2, "hidden": 160, **options}
    return Pair(folder, "llama", {**options, **ours}, llama_peer(options, peers), "")


def mixtral(folder, **options):
    options = {"kv_heads": 2, "hidden": 96, "experts": 4, "experts_per_token": 2,
               "router_aux_loss": 0.02, **options}
    return ExpertsPair(folder, "mixtral", options, mixtral_peer(options), "")


FAMILIES = {"gpt2": gpt2, "llama": llama, "mixtral": mixtral}
VARIANTS = {**FAMILIES, **{f"mixtral, {name}": functools.partial(mixtral, **options) for name, options in {
    "tied": {"tied": True}, "one expert a token": {"experts_per_token": 1},
    "many experts": {"experts": 16, "experts_per_token": 5, "hidden": 40, "kv_heads": 4},
    "all experts": {"experts": 2, "kv_heads": 1},
    "a heavy loss": {"experts": 8, "router_aux_loss": 1.0},
    "no loss": {"router_aux_loss": 0.0}}.items()}, **{f"llama, {name}": functools.partial(llama, **options) for name, options in {
    "tied": {"tied": True}, "no groups": {"kv_heads": 4}, "one group": {"kv_heads": 1},
    "linear": {"rope": "linear"}, "llama3": {"rope": "llama3"}}.items()}}


def text_like(generator, *shape):
    """Tokens of which each follows from the one before or is a new draw: there is something to learn."""
    drawn = torch.randint(VOCABULARY, shape, generator=generator)
    keeps = torch.rand(shape, generator=generator) < 0.7
    for i in range(1, shape[-1]):
        follower = (5 * drawn[..., i - 1] + 3) % VOCABULARY
        drawn[..., i] = torch.where(keeps[..., i], follower, drawn[..., i])
    return drawn


def blocks(tokens):
    """What each token may see, added to its scores, and where it stands in its document: written out
    token by token."""
    mask = torch.full((len(tokens), 1, POSITIONS, POSITIONS), torch.finfo(torch.float32).min)
    places = torch.zeros_like(tokens)
    for row, text in enumerate(tokens.tolist()):
        begin = 0
        for i, token in enumerate(text):
            mask[row, 0, i, begin:i + 1] = 0
            places[row, i] = i - begin
            if token == END:
                begin = i + 1
    return mask, places


class LanguageModelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.generator = torch.Generator().manual_seed(2)

    def check_each(self, check, variants=VARIANTS):
        for name, make in variants.items():
            with self.subTest(name):
                check(make(self.folder))

    def batches(self, *shape):
        text = text_like(self.generator, *shape, POSITIONS + 1)
        return text[..., :-1], text[..., 1:]

    def test_names_shapes_and_types_are_the_peers(self):
        def described(state):
            return {key: (tuple(value.shape), value.dtype) for key, value in state.items()}

        self.check_each(lambda pair: self.assertEqual(described(pair.initial_state()),
                                                      described(pair.peer_tensors())))

    def test_initialisation_is_distributed_as_the_peers(self):
        self.check_each(self.check_initialisation, FAMILIES)

    def check_initialisation(self, pair):
        ours = pair.initial_state()
        for name, expected in pair.peer_tensors().items():
            with self.subTest(name):
                if expected.std() == 0:
                    torch.testing.assert_close(ours[name], expected.data, rtol=0, atol=0)
                    continue
                # Six standard errors of a deviation, std / sqrt(2 n), on both sides.
                std = expected.std().item()
                allowed = 6 * std * (2 / expected.numel()) ** 0.5
                self.assertAlmostEqual(ours[name].std().item(), std, delta=allowed)
                self.assertAlmostEqual(ours[name].mean().item(), 0, delta=allowed)

    def check_logits(self, pair):
        state = pair.initial_state()
        for weights in (state, disturb(state, self.generator)):
            self.check_logits_of(pair, weights)

    def check_logits_of(self, pair, state):
        tokens, _ = self.batches(4)
        pair.load(state)
        with torch.no_grad():
            expected = pair.peer(tokens).logits
        self.assertGreater(expected.std().item(), 1e-2)
        ours = pair.twin.logits(state, tokens)
        allowed = 1e-5 * max(1.0, expected.abs().max().item())
        self.assertLessEqual((ours - expected).abs().max().item(), allowed)

    def test_logits_are_the_peers(self):
        self.check_each(self.check_logits)

    def test_gradients_are_the_peers(self):
        self.check_each(self.check_gradients)

    def check_gradients(self, pair):
        state = disturb(pair.initial_state(), self.generator)
        pair.load(state)
        tokens, targets = self.batches(4)
        pair.peer_loss(tokens, targets).backward()
        ours = pair.twin.gradients(state, tokens, targets)
        expected = pair.peer_gradients()
        self.assertEqual(sorted(ours), sorted(expected))
        for name, gradient in expected.items():
            # Relative to the largest of its tensor: a key's bias has a true gradient of zero.
            allowed = 1e-5 * max(gradient.abs().max().item(), 1e-3)
            difference = (ours[name] - gradient).abs().max().item()
            self.assertLessEqual(difference, allowed, name)

    def test_packed_documents_are_the_peers_with_a_mask_of_blocks(self):
        self.check_each(self.check_packed_documents)

    def check_packed_documents(self, pair):
        tokens, targets = self.batches(4)
        tokens[0, [4, 5, 20]] = END  # one of them a document of nothing but its end
        tokens[1, 0] = END
        tokens[2, -1] = END
        masks, places = blocks(tokens)
        end = torch.tensor(END)
        state = disturb(pair.initial_state(), self.generator)
        pair.load(state)
        more = {"attention_mask": masks, "position_ids": places}
        expected = pair.peer(tokens, **more).logits.detach()
        ours = pair.twin.logits(state, tokens, end_of_text=end)
        allowed = 1e-5 * max(1.0, expected.abs().max().item())
        self.assertLessEqual((ours - expected).abs().max().item(), allowed)
        crossing = pair.twin.logits(state, tokens)
        self.assertGreater((crossing - expected).abs().max().item(), 100 * allowed)

        pair.peer_loss(tokens, targets, **more).backward()
        ours = pair.twin.gradients(state, tokens, targets, end_of_text=end)
        for name, gradient in pair.peer_gradients().items():
            allowed = 1e-5 * max(gradient.abs().max().item(), 1e-3)
            self.assertLessEqual((ours[name] - gradient).abs().max().item(), allowed, name)

    def test_training_steps_are_the_peers(self):
        self.check_each(self.check_steps, FAMILIES)

    def check_steps(self, pair):
        state = pair.initial_state()
        tokens, targets = self.batches(STEPS, 8)
        pair.load(state)
        decayed = [value for value in pair.peer.parameters() if value.dim() > 1]
        plain = [value for value in pair.peer.parameters() if value.dim() <= 1]
        optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                       {"params": plain, "weight_decay": 0.0}], lr=LR)
        expected = []
        pair.peer.train()
        for batch, target in zip(tokens, targets):
            loss = pair.peer_loss(batch, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
        ours = pair.twin.losses(state, tokens, targets)
        self.assertEqual(STEPS, len(ours))
        self.assertLess(expected[-1], 0.75 * expected[0])  # it learns
        for step, (value, other) in enumerate(zip(ours, expected)):
            self.assertAlmostEqual(value, other, delta=0.01 * other, msg=f"step {step}")


if __name__ == "__main__":
    unittest.main()
