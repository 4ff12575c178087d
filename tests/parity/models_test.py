"""Our models have the tensors, the initialisation, the logits and the gradients of torchvision's and
timm's.

Numbers are compared where a family has something of its own; its larger members differ in names and
sizes alone, which are compared without values. Convolutional nets with BatchNorm or GroupNorm over the
few values of small maps are compared in fp64: in fp32 PyTorch parts from itself in the other memory
layout.
"""

import os
import tempfile
import unittest

import torch

from parity.twins import (CONVNEXTS, NUM_CLASSES, RESNETS, VITS, Twin, disturb, images, peer_model,
                          peer_with)

MOBILENETS = ["mobilenet_v3_small", "mobilenet_v3_large"]
FAMILIES = [*RESNETS, *VITS, *CONVNEXTS, *MOBILENETS]
# Name and options: what is compared by its numbers.
CASES = {
    "resnet18": ("resnet18", {}),
    "resnet50": ("resnet50", {}),
    "resnext50_32x4d": ("resnext50_32x4d", {}),
    "resnet18, d, zero": ("resnet18", {"stem": "d", "zero_init_residual": True}),
    "resnet50, d": ("resnet50", {"stem": "d"}),
    "resnet18, group": ("resnet18", {"norm": "group"}),
    "resnet50, group, d": ("resnet50", {"norm": "group", "stem": "d"}),
    "vit_tiny": ("vit_tiny", {}),
    "vit_tiny, pooled, scaled": ("vit_tiny", {"pool": "avg", "layer_scale": 0.1, "depth": 3,
                                              "drop_path": 0.1}),
    "vit_small, 2 blocks": ("vit_small", {"depth": 2, "layer_scale": 1e-5}),
    "convnext_tiny": ("convnext_tiny", {}),
    "convnext_tiny, patch 2": ("convnext_tiny", {"patch_size": 2, "layer_scale": 0,
                                                 "drop_path": 0.1}),
    "resnet18, one channel": ("resnet18", {"in_channels": 1}),
    "resnet18, d, one channel": ("resnet18", {"stem": "d", "in_channels": 1}),
    "vit_tiny, one channel": ("vit_tiny", {"depth": 2, "in_channels": 1}),
    "convnext_tiny, one channel": ("convnext_tiny", {"in_channels": 1}),
    "mobilenet_v3_large, one channel": ("mobilenet_v3_large", {"in_channels": 1}),
    "mobilenet_v3_small": ("mobilenet_v3_small", {}),
    "mobilenet_v3_large, group": ("mobilenet_v3_large", {"norm": "group"}),
}
# The short form has each family, norm, stem and pooling once; names and sizes of all.
SHORT = ["resnext50_32x4d", "resnet18, d, zero", "resnet18, group", "resnet18, one channel",
         "vit_tiny, pooled, scaled", "vit_tiny, one channel", "convnext_tiny, one channel",
         "mobilenet_v3_small"]
NUMBERS = list(CASES) if os.environ.get("SCALETRAIN_LONG") == "1" else SHORT
DRAWS = ("drop_path", "dropout")  # keys that make training random


def dtype_of(name):
    return torch.float64 if name in (*RESNETS, *MOBILENETS) else torch.float32


class ModelsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.states = {}  # what our models start from, made once

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        torch.set_num_threads(1)

    def initial_state(self, case):
        if case not in self.states:
            name, options = CASES[case]
            state = Twin(self.folder, name, options).initial_state()
            # Out of the file, which the next one overwrites.
            self.states[case] = {key: value.clone() for key, value in state.items()}
        return self.states[case]

    def test_names_and_sizes_of_every_case_are_the_peers(self):
        for case, (name, options) in CASES.items():
            if case not in NUMBERS:
                with self.subTest(case), torch.device("meta"):
                    self.assertEqual(Twin(self.folder, name, options).shapes(),
                                     {key: tuple(value.shape) for key, value in
                                      peer_model(name, **options).state_dict().items()})

    def test_names_and_sizes_of_every_member_are_the_peers(self):
        size = {"train": {"shards": "unused.tar"}, "image_size": 224}
        for name in FAMILIES:
            with self.subTest(name):
                options = {"patch_size": 16} if name in VITS else {}
                ours = Twin(self.folder, name, {"num_classes": 1000, **options}, data=size).shapes()
                with torch.device("meta"):
                    peer = peer_model(name, num_classes=1000, **(
                        {"image_size": 224, **options} if name in VITS else {}))
                self.assertEqual(ours, {key: tuple(value.shape)
                                        for key, value in peer.state_dict().items()})

    def test_names_shapes_and_types_are_the_peers(self):
        for case in NUMBERS:
            name, options = CASES[case]
            with self.subTest(case):
                def described(state):
                    return {key: (tuple(value.shape), value.dtype) for key, value in state.items()}

                with torch.device("meta"):
                    peer = peer_model(name, **options)
                self.assertEqual(described(self.initial_state(case)), described(peer.state_dict()))

    def test_initialisation_is_distributed_as_the_peers(self):
        torch.manual_seed(1)
        for case in NUMBERS:
            name, options = CASES[case]
            ours = self.initial_state(case)
            for key, expected in peer_model(name, **options).state_dict().items():
                with self.subTest(f"{case} {key}"):
                    self.compare_distributions(ours[key].double(), expected.double())

    def compare_distributions(self, ours, expected):
        if expected.numel() == 1 or expected.std() == 0:  # a constant
            torch.testing.assert_close(ours, expected, rtol=0, atol=0)
            return
        # Six standard errors: of n values the mean is off by std / sqrt(n), the deviation by about
        # std / sqrt(2 n); both sides were drawn.
        std = expected.std().item()
        allowed = 6 * std * (2 / expected.numel()) ** 0.5
        self.assertAlmostEqual(ours.mean().item(), expected.mean().item(), delta=allowed)
        self.assertAlmostEqual(ours.std().item(), std, delta=allowed)
        # A uniform and a normal of one deviation differ in how far their values reach: the mean
        # absolute value is 0.866 of the deviation in one, 0.798 in the other.
        self.assertAlmostEqual(ours.abs().mean().item(), expected.abs().mean().item(), delta=allowed)

    def test_logits_after_training_are_the_peers(self):
        generator = torch.Generator().manual_seed(2)
        for case in NUMBERS:
            with self.subTest(case):
                self.compare_logits(case, disturb(self.initial_state(case), generator))

    def compare_logits(self, case, state):
        name, options = CASES[case]
        peer = peer_with(state, name, **options).eval()
        batch = images(torch.Generator().manual_seed(3), 4, channels=options.get("in_channels", 3))
        dtype = dtype_of(name)
        with torch.no_grad():
            expected = peer.to(dtype)(batch.to(dtype))
        self.assertGreater(expected.std().item(), 1e-3)  # nothing is proved by logits of zero
        ours = Twin(self.folder, name, options).logits(state, batch.to(dtype))
        # 1e-5 for logits of about one; the rounding of larger ones grows with them.
        allowed = 1e-9 if dtype == torch.float64 else 1e-5
        allowed *= max(1.0, expected.abs().max().item())
        self.assertLessEqual((ours - expected).abs().max().item(), allowed)

    def test_gradients_in_training_are_the_peers(self):
        generator = torch.Generator().manual_seed(4)
        for case in NUMBERS:
            name, options = CASES[case]
            options = {key: value for key, value in options.items() if key not in DRAWS}
            if name in MOBILENETS:
                options["dropout"] = 0.0
            with self.subTest(case):
                state = disturb(self.initial_state(case), generator)
                dtype = dtype_of(name)
                batch = images(generator, 4, channels=options.get("in_channels", 3)).to(dtype)
                targets = torch.randint(NUM_CLASSES, (4,), generator=generator)
                peer = peer_with(state, name, **options).to(dtype).train()
                torch.nn.functional.cross_entropy(peer(batch), targets).backward()
                ours = Twin(self.folder, name, options).gradients(state, batch, targets)
                allowed = 1e-9 if dtype == torch.float64 else 1e-4
                for key, parameter in peer.named_parameters():
                    expected = parameter.grad
                    # Some are zero but for rounding: a shift before BatchNorm changes nothing.
                    size = expected.abs().max().clamp_min(1e-6)
                    error = (ours[key] - expected).abs().max() / size
                    self.assertLessEqual(error.item(), allowed, key)


if __name__ == "__main__":
    unittest.main()
