"""Transforms that choose at random: what comes out, and how often, against torchvision and timm.

Every image that comes out must be one that the peer can make, and all of them together as frequent
as its own table says (chi-squared; the draws are fixed, so that a test that passes always does).
"""
import collections
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import pictures
import scipy.stats
import torch
from PIL import Image, ImageFilter
from timm.data import auto_augment
from timm.data import random_erasing as timm_erasing
from torchvision import transforms
from torchvision.transforms import autoaugment
from torchvision.transforms import functional as F
from torchvision.transforms import v2
from torchvision.transforms.autoaugment import AutoAugmentPolicy, _apply_op

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "augment_program")
OUR_NAMES = {"Posterize": "posterize", "Rotate": "rotate", "Solarize": "solarize",
             "AutoContrast": "auto_contrast", "Equalize": "equalize", "Color": "color",
             "Invert": "invert", "Contrast": "contrast", "Sharpness": "sharpness",
             "ShearX": "shear_x"}
FACTORS = ("Color", "Contrast", "Sharpness")
MEAN, STD = numpy.array([0.485, 0.456, 0.406]), numpy.array([0.229, 0.224, 0.225])
SURE = 1e-4  # of a true difference
COUNT = 6000  # of images


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, timeout=120,
                          capture_output=True).stdout


def peer_policy():
    return v2.AutoAugment()._get_policies(AutoAugmentPolicy.IMAGENET)


def magnitude_of(name, level, width, height):
    """(magnitude, whether it has a random sign) as torchvision passes it on; (0, False) for none."""
    values, signed = v2.AutoAugment._AUGMENTATION_SPACE[name]
    values = values(10, height, width)
    if values is None:
        return 0.0, False
    scale = 255 if name == "Solarize" else 1  # v2 has it as a share of the largest value
    return float(values[level]) * scale, signed


class PolicyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def applied(self, augment, image, count):
        path = self.folder / "image.png"
        image.save(path)
        pixels = run("apply", json.dumps([augment]), count, path)
        return numpy.frombuffer(pixels, numpy.uint8).reshape(count, image.height, image.width, 3)

    def check_frequencies(self, seen, expected):
        """Counts by what was seen, against probabilities; what is rare is taken together."""
        total = sum(seen.values())
        often = [key for key, share in expected.items() if share * total >= 5]
        counts = [seen[key] for key in often] + [total - sum(seen[key] for key in often)]
        shares = [expected[key] for key in often]
        shares.append(1 - sum(shares))
        if shares[-1] * total < 1:
            counts, shares = counts[:-1], [share / sum(shares[:-1]) for share in shares[:-1]]
        result = scipy.stats.chisquare(counts, [share * sum(counts) for share in shares])
        print(f"{len(counts)} outcomes of {total}: p {result.pvalue:.3f}")
        self.assertGreater(result.pvalue, SURE)

    def test_auto_augments_table_is_torchvisions(self):
        width, height = 320, 240
        ours = [line.split() for line in run("policy", width, height).decode().splitlines()]
        theirs = peer_policy()
        self.assertEqual(len(ours), len(theirs))
        for words, pair in zip(ours, theirs):
            for (name, probability, value, negative), (peer, peer_probability, level) in zip(
                    (words[:4], words[4:]), pair):
                self.assertEqual((name, float(probability)), (OUR_NAMES[peer], peer_probability))
                magnitude, signed = magnitude_of(peer, level, width, height)
                expected = {magnitude, -magnitude} if signed else {magnitude}
                if peer in FACTORS:
                    expected = {1 + one for one in expected}
                if peer in ("AutoContrast", "Equalize", "Invert"):
                    continue  # they have none
                found = sorted({float(value), float(negative)})
                for one, other in zip(found, sorted(expected), strict=True):
                    self.assertAlmostEqual(one, other, places=4)

    def check_outcomes(self, augment, ways, most_near):
        """`ways`: (probability, [(operation, magnitude), ...]) of each way that the peer can go."""
        image = pictures.photograph(32, 32)
        possible = collections.defaultdict(float)
        for share, steps in ways:
            out = image
            for name, magnitude in steps:
                out = _apply_op(out, name, magnitude, transforms.InterpolationMode.NEAREST, None)
            possible[numpy.asarray(out).tobytes()] += share
        self.assertAlmostEqual(sum(possible.values()), 1)
        keys = list(possible)
        pixels = numpy.stack([numpy.frombuffer(key, numpy.uint8) for key in keys]).astype(int)
        seen, near, nearest = collections.Counter(), 0, {}
        for ours in self.applied(augment, image, COUNT):
            key = ours.tobytes()
            if key not in possible:
                # A shear by torchvision goes through tan(atan(x)), so that a place on the edge
                # between two pixels may fall on either side; equalizing spreads that.
                if key not in nearest:
                    differ = abs(pixels - ours.reshape(-1).astype(int)).mean(axis=1)
                    self.assertLess(differ.min(), 3)
                    nearest[key] = keys[differ.argmin()]
                key = nearest[key]
                near += 1
            seen[key] += 1
        print(f"{augment}: {len(possible)} images are possible; {near} of {COUNT} were near to one")
        self.assertLessEqual(near, most_near * COUNT)
        self.check_frequencies(seen, possible)

    def test_auto_augment_makes_what_torchvision_makes_as_often(self):
        ways = []
        for pair in peer_policy():
            for happens in itertools.product((False, True), repeat=2):
                for signs in itertools.product((1, -1), repeat=2):
                    share, steps = 1 / len(peer_policy()) / 4, []
                    for (name, probability, level), does, sign in zip(pair, happens, signs):
                        share *= probability if does else 1 - probability
                        magnitude, signed = magnitude_of(name, level, 32, 32)
                        if does:
                            steps.append((name, magnitude * (sign if signed else 1)))
                    if share > 0:
                        ways.append((share, steps))
        self.check_outcomes("auto_augment", ways, 0.05)  # a shear is in one pair of 25

    @staticmethod
    def ways_of_space(space, bins):
        for name, (values, signed) in space.items():
            # Rounded: 32-bit floats make 15.999999, and so 15 pixels, of 16.
            magnitudes = [round(float(values[i]), 5) for i in bins] if values.ndim > 0 else [0.0]
            for magnitude in magnitudes:
                for sign in (1, -1) if signed else (1,):
                    share = 1 / len(space) / len(magnitudes) / (2 if signed else 1)
                    yield share, [(name, sign * magnitude)]

    def test_trivial_augment_makes_what_torchvision_makes_as_often(self):
        space = autoaugment.TrivialAugmentWide()._augmentation_space(31)
        self.check_outcomes("trivial_augment", self.ways_of_space(space, range(31)),
                            0.2)  # 2 operations of 14 are shears

    def test_rand_augment_makes_what_torchvision_makes_as_often(self):
        space = autoaugment.RandAugment()._augmentation_space(31, (32, 32))
        self.check_outcomes({"name": "rand_augment", "num_ops": 1, "magnitude": 9},
                            self.ways_of_space(space, [9]), 0.2)

    def test_three_augment_is_timms_policy_3a(self):
        image = pictures.photograph(48, 40)
        policy = auto_augment.auto_augment_policy("3a")
        solarize, grey, blur = (pair[0] for pair in policy)
        arguments = [op.level_fn(op.magnitude, op.hparams)[0] for op in (solarize, grey, blur)]
        self.assertEqual(arguments[2], 1.0)  # of the largest radius, 2
        exact = {"solarize": numpy.asarray(auto_augment.solarize(image, arguments[0])),
                 "grey": numpy.asarray(auto_augment.desaturate(image, arguments[1]))}
        radii = numpy.linspace(0.1, 2, 77)
        blurred = numpy.stack([numpy.asarray(image.filter(ImageFilter.GaussianBlur(float(radius))))
                               for radius in radii]).astype(int)
        seen, found, worst = collections.Counter(), [], 0
        for ours in self.applied("three_augment", image, 900):
            name = next((n for n, one in exact.items() if (one == ours).all()), "blur")
            seen[name] += 1
            if name == "blur":
                differ = abs(blurred - ours).mean(axis=(1, 2, 3))
                found.append(radii[differ.argmin()])
                worst = max(worst, differ.min())
        print(f"blur: mean difference from Pillow's at most {worst:.2f}")
        self.assertLess(worst, 1.5)  # Pillow's is a row of box filters
        self.check_frequencies(seen, dict.fromkeys(("solarize", "grey", "blur"), 1 / 3))
        uniform = scipy.stats.kstest(found, scipy.stats.uniform(0.1, 1.9).cdf)
        self.assertLess(uniform.statistic, 0.2)  # small radii all change nothing

    def boxes(self, outputs, original, is_erased):
        """Of each image (top, left, height, width), or None; all else must be as it was."""
        for ours in outputs:
            rows, columns = numpy.nonzero(is_erased(ours))
            if len(rows) == 0:
                numpy.testing.assert_array_equal(ours, original)
                yield None
                continue
            top, left = rows.min(), columns.min()
            height, width = rows.max() + 1 - top, columns.max() + 1 - left
            rest = ours.copy()
            rest[top:top + height, left:left + width] = original[top:top + height,
                                                                 left:left + width]
            numpy.testing.assert_array_equal(rest, original)
            yield int(top), int(left), int(height), int(width)

    def test_random_erasing_is_torchvisions(self):
        dark = Image.fromarray(pictures.picture(numpy.random.default_rng(1), 64, 48) // 4)
        original = numpy.asarray(dark)
        colour = numpy.rint(MEAN * 255).astype(numpy.uint8)  # 0 after normalising
        outputs = self.applied({"name": "random_erasing", "probability": 0.7}, dark, 3000)
        ours = list(self.boxes(outputs, original, lambda image: (image == colour).all(axis=2)))
        tensor = torch.from_numpy(original.copy()).permute(2, 0, 1)
        value = torch.from_numpy(colour).view(3, 1, 1)
        for box, output in zip(ours, outputs):
            if box:
                top, left, height, width = box
                expected = F.erase(tensor, top, left, height, width, value).permute(1, 2, 0)
                numpy.testing.assert_array_equal(output, expected)
        erased = [box for box in ours if box]
        self.assertGreater(scipy.stats.binomtest(len(erased), 3000, 0.7).pvalue, SURE)
        torch.manual_seed(2)
        peer = [transforms.RandomErasing.get_params(tensor, (0.02, 0.33), (0.3, 3.3), [0.0])[:4]
                for _ in range(4000)]
        for name, of_box in (("area", lambda t, l, h, w: h * w), ("shape", lambda t, l, h, w: h / w),
                             ("top", lambda t, l, h, w: t / (48 - h)),
                             ("left", lambda t, l, h, w: l / (64 - w))):
            with self.subTest(name):
                pvalue = scipy.stats.ks_2samp([of_box(*box) for box in erased],
                                              [of_box(*box) for box in peer]).pvalue
                self.assertGreater(pvalue, SURE)

    def test_noise_is_normal_as_timms_after_normalising(self):
        # 0..255 cuts it at about -2.1 and 2.2 to 2.6.
        white = Image.new("RGB", (64, 64), (255, 255, 255))
        outputs = self.applied({"name": "random_erasing", "probability": 1, "value": "noise"},
                               white, 200)
        inside = outputs.astype(float)[(outputs != 255).all(axis=3)]
        values = (inside / 255 - MEAN) / STD
        peer = timm_erasing._get_pixels(True, False, (len(values), 3), device="cpu").numpy()
        low, high = (0 - MEAN) / STD, (1 - MEAN) / STD
        for c in range(3):
            expected = numpy.clip(peer[:, c], low[c], high[c])
            expected = expected[expected < high[c] - 0.01]  # white is not told from what was there
            self.assertAlmostEqual(values[:, c].mean(), expected.mean(), delta=0.03)
            self.assertAlmostEqual(values[:, c].std(), expected.std(), delta=0.03)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
