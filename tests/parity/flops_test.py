"""FLOPs of a training step, counted from the operations that ran, equal torch.utils.flop_counter's for the
same operations, forward and backward. Known errors of that counter on a CPU, which are corrected here
exactly (docs/reference/metrics.md):

- fused attention counts 0, or in eager mode four products in backward where fused attention computes five;
- causal attention counts masked pairs;
- the weight gradient of a grouped convolution counts as if it had one group.

Our convolutions leave out the rows and columns of a kernel that meet only padding, which the counter cannot
know.
"""

import tempfile
import unittest

import torch
from torch.utils.flop_counter import FlopCounterMode

from parity import language_models_test as language
from parity.twins import IMAGE_SIZE, NUM_CLASSES, VITS, Twin, images, peer_with

BATCH = 2
VISION = {"resnet18": {}, "resnext50_32x4d": {}, "vit_tiny": {"depth": 2}, "convnext_tiny": {}}


def counted(run):
    with FlopCounterMode(display=False) as counter:
        result = run()
    return result, counter.get_total_flops()


def peer_flops(loss):
    """Forward and backward of what `loss` computes, as the peer's counter gives them."""
    value, forward = counted(loss)
    _, backward = counted(value.backward)
    return [forward, backward]


def reached(size, outputs, kernel, stride, padding):
    """Rows of a kernel that meet the input anywhere."""
    return sum(any(0 <= output * stride + row - padding < size for output in range(outputs))
               for row in range(kernel))


class Convolutions:
    """Differences of a model's convolutions, found while it runs."""

    def __init__(self, model):
        self.forward = self.backward = 0
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d):
                module.register_forward_hook(self.look)

    def look(self, module, inputs, output):
        operations = 2 * output.numel() * module.weight[0].numel()
        taps = [reached(inputs[0].shape[2 + i], output.shape[2 + i], module.kernel_size[i],
                        module.stride[i], module.padding[i]) for i in (0, 1)]
        all_taps = module.kernel_size[0] * module.kernel_size[1]
        ours = operations * taps[0] * taps[1] // all_taps
        self.forward += ours - operations
        if inputs[0].requires_grad:
            self.backward += ours - operations
        self.backward += ours - operations * module.groups


def attention_flops(layers, heads, tokens, head_dim, causal):
    """Forward and backward of fused attention, with unmasked pairs only."""
    pairs = tokens * (tokens + 1) // 2 if causal else tokens * tokens
    product = 2 * layers * BATCH * heads * pairs * head_dim
    return 2 * product, 5 * product


class FlopsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        torch.set_num_threads(1)
        self.generator = torch.Generator().manual_seed(1)

    def check_flops(self, ours, expected):
        """Also that wrong counts differ."""
        self.assertEqual(expected, ours[:2])
        self.assertEqual(0, ours[2])
        for planted in ([2 * one for one in ours[:2]], [ours[0], ours[1] + ours[0]]):
            self.assertNotEqual(expected, planted)

    def test_image_models_count_as_the_peer(self):
        for name, options in VISION.items():
            with self.subTest(name):
                twin = Twin(self.folder, name, options)
                state = twin.initial_state()
                batch = images(self.generator, BATCH)
                targets = torch.zeros(BATCH, dtype=torch.long)
                peer = peer_with(state, name, **options)
                convolutions = Convolutions(peer)
                expected = peer_flops(lambda: torch.nn.functional.cross_entropy(peer(batch), targets))
                expected[0] += convolutions.forward
                expected[1] += convolutions.backward
                if name in VITS:
                    dim, _, heads = VITS[name]
                    tokens = (IMAGE_SIZE // 4) ** 2 + 1
                    fused = attention_flops(options["depth"], heads, tokens, dim // heads, False)
                    expected = [one + more for one, more in zip(expected, fused)]
                self.check_flops(twin.flops(state, batch, targets), expected)

    def peer_of_language_model(self, pair, attention):
        """What the peer's counter gives, corrected."""
        pair.peer.set_attn_implementation(attention)
        pair.load(self.state)
        expected = peer_flops(lambda: pair.peer_loss(*self.batch))
        layers, heads, dim = (language.COMMON[key] for key in ("depth", "heads", "dim"))
        tokens, head_dim = language.POSITIONS, dim // heads
        fused = attention_flops(layers, heads, tokens, head_dim, True)
        expected = [one + more for one, more in zip(expected, fused)]
        if attention == "eager":  # two and four products of all pairs
            product = 2 * layers * BATCH * heads * tokens * tokens * head_dim
            expected = [expected[0] - 2 * product, expected[1] - 4 * product]
        return expected

    def language_pair(self, make, **options):
        pair = make(self.folder, **options)
        self.state = pair.initial_state()
        text = language.text_like(self.generator, BATCH, language.POSITIONS + 1)
        self.batch = text[:, :-1], text[:, 1:]
        return pair

    def test_language_models_count_as_the_peer(self):
        for make, attention in ((language.gpt2, "sdpa"), (language.gpt2, "eager"),
                                (language.llama, "sdpa"), (language.llama, "eager")):
            with self.subTest(f"{make.__name__}, {attention}"):
                pair = self.language_pair(make)
                self.check_flops(pair.twin.flops(self.state, *self.batch),
                                 self.peer_of_language_model(pair, attention))

    def test_experts_count_the_tokens_that_they_get(self):
        pair = self.language_pair(language.mixtral)
        pair.peer.set_experts_implementation("eager")
        expected = self.peer_of_language_model(pair, "eager")
        ours = pair.twin.flops(self.state, *self.batch)
        self.check_flops(ours, expected)
        # A count of all four experts, each of three products a token, would be flagged.
        every = self.language_pair(language.mixtral, experts_per_token=4)
        all_experts = every.twin.flops(self.state, *self.batch)
        tokens = BATCH * language.POSITIONS
        one = 2 * 3 * tokens * language.COMMON["dim"] * 96 * language.COMMON["depth"]
        self.assertEqual([expected[0] + 2 * one, expected[1] + 2 * 2 * one], all_experts[:2])

    def test_recomputation_counts_apart(self):
        pair = self.language_pair(language.llama)
        plain = pair.twin.flops(self.state, *self.batch)
        again = pair.twin.flops(self.state, *self.batch, recompute=torch.tensor(1))
        self.assertEqual(plain[:2], again[:2])
        # Forward again ends with the last tensor that backward needs: at most a forward, and most of it.
        self.assertLessEqual(again[2], plain[0])
        self.assertGreater(again[2], plain[0] // 2)


if __name__ == "__main__":
    unittest.main()
