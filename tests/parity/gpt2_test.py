"""Our GPT-2 has the tensors, initialisation, logits, gradients and training of transformers'."""

import tempfile
import unittest

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from parity.twins import Twin, disturb

SIZES = {"vocab_size": 96, "positions": 32, "dim": 64, "depth": 3, "heads": 4, "dropout": 0.0}
PREFIX = "transformer."
STEPS = 100
LR = 3e-3


def peer_model():
    model = GPT2LMHeadModel(GPT2Config(
        vocab_size=SIZES["vocab_size"], n_positions=SIZES["positions"], n_embd=SIZES["dim"],
        n_layer=SIZES["depth"], n_head=SIZES["heads"],
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    return model.eval()


def peer_tensors(model):
    """By the names of the published files, without the tied head."""
    return {name.removeprefix(PREFIX): value for name, value in model.state_dict().items()
            if name.startswith(PREFIX)}


def load_into(model, state):
    missing = model.load_state_dict({PREFIX + name: value for name, value in state.items()},
                                    strict=False)
    assert missing.missing_keys in ([], ["lm_head.weight"]) and not missing.unexpected_keys, missing
    model.tie_weights()


def peer_loss(model, tokens, targets):
    logits = model(tokens).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def text_like(generator, *shape):
    """Tokens of which each follows from the one before or is a new draw: there is something to learn."""
    drawn = torch.randint(SIZES["vocab_size"], shape, generator=generator)
    keeps = torch.rand(shape, generator=generator) < 0.7
    for i in range(1, shape[-1]):
        follower = (5 * drawn[..., i - 1] + 3) % SIZES["vocab_size"]
        drawn[..., i] = torch.where(keeps[..., i], follower, drawn[..., i])
    return drawn


class Gpt2Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.generator = torch.Generator().manual_seed(2)
        self.twin = Twin(folder.name, "gpt2", SIZES,
                         optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1})
        self.peer = peer_model()

    def batches(self, *shape):
        text = text_like(self.generator, *shape, SIZES["positions"] + 1)
        return text[..., :-1], text[..., 1:]

    def test_names_shapes_and_types_are_the_peers(self):
        def described(state):
            return {key: (tuple(value.shape), value.dtype) for key, value in state.items()}

        self.assertEqual(described(self.twin.initial_state()), described(peer_tensors(self.peer)))

    def test_initialisation_is_distributed_as_the_peers(self):
        ours = self.twin.initial_state()
        for name, expected in peer_tensors(self.peer).items():
            with self.subTest(name):
                if expected.std() == 0:
                    torch.testing.assert_close(ours[name], expected, rtol=0, atol=0)
                    continue
                # Six standard errors of a deviation, std / sqrt(2 n), on both sides.
                std = expected.std().item()
                allowed = 6 * std * (2 / expected.numel()) ** 0.5
                self.assertAlmostEqual(ours[name].std().item(), std, delta=allowed)
                self.assertAlmostEqual(ours[name].mean().item(), 0, delta=allowed)

    def test_logits_are_the_peers(self):
        tokens, _ = self.batches(4)
        for state in (self.twin.initial_state(),
                      disturb(self.twin.initial_state(), self.generator)):
            load_into(self.peer, state)
            with torch.no_grad():
                expected = self.peer(tokens).logits
            self.assertGreater(expected.std().item(), 1e-2)
            ours = self.twin.logits(state, tokens)
            allowed = 1e-5 * max(1.0, expected.abs().max().item())
            self.assertLessEqual((ours - expected).abs().max().item(), allowed)

    def test_gradients_are_the_peers(self):
        state = disturb(self.twin.initial_state(), self.generator)
        load_into(self.peer, state)
        tokens, targets = self.batches(4)
        peer_loss(self.peer, tokens, targets).backward()
        ours = self.twin.gradients(state, tokens, targets)
        expected = {name.removeprefix(PREFIX): value.grad
                    for name, value in self.peer.named_parameters()}
        self.assertEqual(sorted(ours), sorted(expected))
        for name, gradient in expected.items():
            # Relative to the largest of its tensor: a key's bias has a true gradient of zero.
            allowed = 1e-5 * max(gradient.abs().max().item(), 1e-3)
            difference = (ours[name] - gradient).abs().max().item()
            self.assertLessEqual(difference, allowed, name)

    def test_a_hundred_steps_are_the_peers(self):
        state = self.twin.initial_state()
        tokens, targets = self.batches(STEPS, 8)
        load_into(self.peer, state)
        decayed = [value for value in self.peer.parameters() if value.dim() > 1]
        plain = [value for value in self.peer.parameters() if value.dim() <= 1]
        optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                       {"params": plain, "weight_decay": 0.0}], lr=LR)
        expected = []
        self.peer.train()
        for batch, target in zip(tokens, targets):
            loss = peer_loss(self.peer, batch, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
        ours = self.twin.losses(state, tokens, targets)
        self.assertEqual(STEPS, len(ours))
        self.assertLess(expected[-1], 0.75 * expected[0])  # it learns
        for step, (value, other) in enumerate(zip(ours, expected)):
            self.assertAlmostEqual(value, other, delta=0.01 * other, msg=f"step {step}")


if __name__ == "__main__":
    unittest.main()
