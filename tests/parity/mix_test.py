"""Mixup and cutmix are timm's and torchvision's, given the share and the box that were drawn."""

import tempfile
import unittest
from unittest import mock

import numpy
import scipy.stats
import torch
from timm.data import mixup
from torchvision.transforms import v2

from parity.twins import IMAGE_SIZE, NUM_CLASSES, Twin, images

COUNT = 32
MIXES = {"mixup": {"mixup": 0.8}, "cutmix": {"cutmix": 1.0},
         "both": {"mixup": 0.2, "cutmix": 1.0, "probability": 0.7}}


class MixTest(unittest.TestCase):
    def setUp(self):
        generator = torch.Generator().manual_seed(5)
        self.images = images(generator, COUNT)
        self.targets = torch.randint(0, NUM_CLASSES, (COUNT,), generator=generator)

    def mixed(self, count=COUNT, **mix):
        """What our mixing makes of the batch, and of each pair (own share, box or None)."""
        with tempfile.TemporaryDirectory() as folder:
            repeated = self.images.repeat(count // COUNT, 1, 1, 1)
            out = Twin(folder, "mlp", mix=mix).mixed(repeated, self.targets.repeat(count // COUNT))
        pairs = []
        for own, x, width, y, height in out[2].tolist():
            box = tuple(map(int, (y, y + height, x, x + width))) if width * height else None
            pairs.append((own, box))
        return out[0], out[1], pairs

    def test_as_timms_mode_pair(self):
        # timm mixes i with count - 1 - i.
        order = [*range(0, COUNT, 2), *range(COUNT - 1, 0, -2)]
        for name, mix in MIXES.items():
            ours, targets, pairs = self.mixed(**mix)
            boxes = iter([box for own, box in pairs if box])
            peer = mixup.Mixup(mixup_alpha=1, cutmix_alpha=1, mode="pair", label_smoothing=0,
                               num_classes=NUM_CLASSES)
            drawn = (numpy.array([own for own, box in pairs], dtype=numpy.float32),
                     numpy.array([box is not None for own, box in pairs]))
            with mock.patch.object(peer, "_params_per_elem", lambda count: drawn), \
                    mock.patch.object(mixup, "rand_bbox", lambda *_, **__: next(boxes)):
                expected, expected_targets = peer(self.images[order].clone(), self.targets[order])
            with self.subTest(name):
                torch.testing.assert_close(ours[order], expected, rtol=0, atol=1e-6)
                torch.testing.assert_close(targets[order], expected_targets, rtol=0, atol=1e-6)

    def test_as_torchvisions_on_each_pair(self):
        # In a batch of two its neighbour is the other one.
        for name, mix in MIXES.items():
            ours, targets, pairs = self.mixed(**mix)
            for i, (own, box) in enumerate(pairs):
                both = slice(2 * i, 2 * i + 2)
                transform = (v2.CutMix if box else v2.MixUp)(num_classes=NUM_CLASSES)
                drawn = {"lam": own}
                if box:
                    top, bottom, left, right = box
                    drawn = {"box": (left, top, right, bottom), "lam_adjusted": own}
                    area = (bottom - top) * (right - left)
                    self.assertAlmostEqual(own, 1 - area / IMAGE_SIZE**2, places=6)
                with mock.patch.object(transform, "make_params", lambda _, drawn=drawn: drawn):
                    expected = transform(self.images[both], self.targets[both])
                with self.subTest(name, pair=i):
                    torch.testing.assert_close(ours[both], expected[0], rtol=0, atol=1e-6)
                    torch.testing.assert_close(targets[both], expected[1], rtol=0, atol=1e-6)

    def test_shares_and_boxes_are_drawn_as_torchvisions(self):
        count = 128 * COUNT  # 2,048 pairs
        torch.manual_seed(3)
        peer = v2.MixUp(alpha=0.8, num_classes=NUM_CLASSES)
        _, _, pairs = self.mixed(count, mixup=0.8)
        theirs = [peer.make_params([])["lam"] for _ in range(4000)]
        self.assertGreater(scipy.stats.ks_2samp([own for own, _ in pairs], theirs).pvalue, 1e-4)
        peer = v2.CutMix(alpha=1.0, num_classes=NUM_CLASSES)
        _, _, pairs = self.mixed(count, cutmix=1.0)
        drawn = [peer.make_params([self.images]) for _ in range(4000)]
        ours = {"share": [own for own, _ in pairs], "top": [box[0] for _, box in pairs if box],
                "right": [box[3] for _, box in pairs if box]}
        boxed = [one["box"] for one in drawn if one["lam_adjusted"] < 1]
        theirs = {"share": [one["lam_adjusted"] for one in drawn], "top": [box[1] for box in boxed],
                  "right": [box[2] for box in boxed]}
        for name, values in ours.items():
            with self.subTest(name):
                self.assertGreater(scipy.stats.ks_2samp(values, theirs[name]).pvalue, 1e-4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
