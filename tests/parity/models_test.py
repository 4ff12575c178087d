"""Our models have the tensors, the initialisation and the logits of torchvision's and timm's."""

import tempfile
import unittest

import torch

from parity.twins import Twin, disturb, images, peer_model

MODELS = ["resnet18", "resnet34", "resnet50", "vit_tiny"]


class ModelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        torch.set_num_threads(1)

    def test_names_shapes_and_types_are_the_peers(self):
        for name in MODELS:
            with self.subTest(name):
                def described(state):
                    return {key: (tuple(value.shape), value.dtype) for key, value in state.items()}

                ours = Twin(self.folder, name).initial_state()
                self.assertEqual(described(ours), described(peer_model(name).state_dict()))

    def test_initialisation_is_distributed_as_the_peers(self):
        torch.manual_seed(1)
        for name in MODELS:
            ours = Twin(self.folder, name).initial_state()
            for key, expected in peer_model(name).state_dict().items():
                with self.subTest(f"{name} {key}"):
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

    def test_logits_of_the_initial_model_are_the_peers(self):
        for name in MODELS:
            with self.subTest(name):
                twin = Twin(self.folder, name)
                self.compare_logits(twin, peer_model(name), twin.initial_state())

    def test_logits_after_training_are_the_peers(self):
        generator = torch.Generator().manual_seed(2)
        for name in MODELS:
            with self.subTest(name):
                twin = Twin(self.folder, name)
                self.compare_logits(twin, peer_model(name), disturb(twin.initial_state(), generator))

    def compare_logits(self, twin, peer, state):
        peer.load_state_dict(state, strict=True)
        peer.eval()
        batch = images(torch.Generator().manual_seed(3), 8)
        with torch.no_grad():
            expected = peer(batch)
        self.assertGreater(expected.std().item(), 1e-3)  # nothing is proved by logits of zero
        ours = twin.logits(state, batch)
        # 1e-5 for logits of about one; the rounding of larger ones grows with them.
        allowed = 1e-5 * max(1.0, expected.abs().max().item())
        self.assertLessEqual((ours - expected).abs().max().item(), allowed)


if __name__ == "__main__":
    unittest.main()
