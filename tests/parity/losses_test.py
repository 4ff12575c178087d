"""Losses, and what they give back to the logits, are PyTorch's, timm's and torchvision's."""

import tempfile
import unittest

import torch
from timm.loss import BinaryCrossEntropy
from torch.nn import functional
from torchvision.ops import sigmoid_focal_loss

from parity.twins import NUM_CLASSES, mean_losses

COUNT = 24
TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}
WEIGHTS = [0.1 * (1 + i % 5) for i in range(NUM_CLASSES)]  # which fp32 does not hold exactly


def shares(targets, smoothing=0.0):
    """One-hot targets as shares, smoothed as timm's mixup does for the losses behind it."""
    dense = functional.one_hot(targets, NUM_CLASSES).double() if targets.dim() == 1 else targets
    return dense * (1 - smoothing) + smoothing / NUM_CLASSES


def cross_entropy(label_smoothing=0.0, class_weights=None):
    weight = torch.tensor(class_weights, dtype=torch.float64) if class_weights else None
    return torch.nn.CrossEntropyLoss(weight, label_smoothing=label_smoothing)


def timms(label_smoothing=0.0, target_threshold=None, class_weights=None, pos_weight=None,
          sum_classes=False):
    """timm smooths class numbers alone, and leaves that of shares to its mixup."""
    tensor = [None if value is None else torch.tensor(value, dtype=torch.float64)
              for value in (class_weights, pos_weight)]
    loss = BinaryCrossEntropy(label_smoothing, target_threshold, tensor[0], sum_classes=sum_classes,
                              pos_weight=tensor[1])
    return lambda logits, targets: loss(
        logits, targets if targets.dim() == 1 else shares(targets, label_smoothing))


def torchvisions(label_smoothing=0.0, class_weights=None, sum_classes=False, **options):
    def loss(logits, targets):
        losses = sigmoid_focal_loss(logits, shares(targets, label_smoothing), **options)
        losses = losses * torch.tensor(class_weights or [1.0] * NUM_CLASSES, dtype=torch.float64)
        return losses.sum(1).mean() if sum_classes else losses.mean()
    return loss


CASES = {
    "cross_entropy": (cross_entropy, [
        {}, {"label_smoothing": 0.1}, {"class_weights": WEIGHTS},
        {"class_weights": WEIGHTS, "label_smoothing": 0.2}]),
    "binary_cross_entropy": (timms, [
        {}, {"label_smoothing": 0.1}, {"sum_classes": True}, {"class_weights": WEIGHTS},
        {"target_threshold": 0.2}, {"target_threshold": 0.0, "sum_classes": True},
        {"label_smoothing": 0.1, "target_threshold": 0.3, "pos_weight": 2.3}]),
    "focal": (torchvisions, [
        {}, {"alpha": -1.0}, {"alpha": 0.75, "gamma": 1.5}, {"gamma": 0.0, "sum_classes": True},
        {"label_smoothing": 0.1, "class_weights": WEIGHTS}])}


class LossesTest(unittest.TestCase):
    def setUp(self):
        generator = torch.Generator().manual_seed(7)
        self.logits = 3 * torch.randn(COUNT, NUM_CLASSES, generator=generator)
        classes = torch.randint(0, NUM_CLASSES, (COUNT,), generator=generator)
        share = torch.rand(COUNT, 1, generator=generator)
        hot = functional.one_hot(classes, NUM_CLASSES)
        # Class numbers, mixup's shares, and any number of classes.
        self.targets = {"class": classes,
                        "mixed": share * hot + (1 - share) * hot.flip(0),
                        "multi": (torch.rand(COUNT, NUM_CLASSES, generator=generator) < 0.3).float()}

    def test_values_and_gradients(self):
        cases = [(name, peer, options, kind, dtype)
                 for name, (peer, all_options) in CASES.items() for options in all_options
                 for kind in self.targets if (kind, name) != ("multi", "cross_entropy")
                 for dtype in TOLERANCES]
        given = [({"name": name, **options}, self.logits.to(dtype), self.targets_of(kind, dtype))
                 for name, _, options, kind, dtype in cases]
        with tempfile.TemporaryDirectory() as folder:
            results = mean_losses(folder, given)
        for (name, peer, options, kind, dtype), (loss, gradient) in zip(cases, results):
            with self.subTest(name, kind=kind, dtype=dtype, **options):
                self.assertEqual(loss.dtype, dtype)
                self.compare(loss, gradient, peer(**options), self.targets_of(kind, dtype),
                             TOLERANCES[dtype])

    def targets_of(self, kind, dtype):
        targets = self.targets[kind]
        return targets.to(dtype) if targets.is_floating_point() else targets

    def compare(self, loss, gradient, peer, targets, tolerance):
        logits = self.logits.double().requires_grad_()
        expected = peer(logits, targets.double() if targets.is_floating_point() else targets)
        expected.backward()
        torch.testing.assert_close(loss.double(), expected.detach(), rtol=tolerance, atol=0)
        torch.testing.assert_close(gradient.double(), logits.grad, rtol=tolerance,
                                   atol=tolerance * logits.grad.abs().max().item())


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
