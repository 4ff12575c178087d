"""Every operation against torchvision (on PIL images) or timm with the same parameters."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import pictures
import torch
from PIL import Image
from timm.data import auto_augment
from torchvision.transforms import InterpolationMode
from torchvision.transforms import autoaugment
from torchvision.transforms import functional as F

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "data_program")
FILL = (10, 20, 30)  # data_program's
NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
SAMPLINGS = {"nearest": NEAREST, "bilinear": BILINEAR}


class AugmentTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        random = numpy.random.default_rng(4)
        self.images = [Image.fromarray(pictures.picture(random, *size))
                       for size in ((96, 96), (61, 47), (33, 80))]
        self.images.append(pictures.photograph(224, 224))
        dark = pictures.picture(random, 50, 50) // 3 + 40
        self.images.append(Image.fromarray(dark.astype(numpy.uint8)))
        self.paths = []
        for i, image in enumerate(self.images):
            self.paths.append(self.folder / f"{i}.png")
            image.save(self.paths[-1])

    def check(self, name, value, reference, tolerance=0, sampling="nearest", mean=None):
        for path, image in zip(self.paths, self.images):
            pixels = subprocess.run([PROGRAM, "op", name, repr(float(value)), sampling, path],
                                    check=True, timeout=60, capture_output=True).stdout
            ours = numpy.frombuffer(pixels, dtype=numpy.uint8).reshape(image.height, image.width, 3)
            difference = abs(ours.astype(int) - numpy.asarray(reference(image)).astype(int))
            with self.subTest(op=name, value=value, sampling=sampling, image=path.name):
                self.assertLessEqual(difference.max(), tolerance)
                if mean is not None:
                    self.assertLessEqual(difference.mean(), mean)

    def test_colours_are_pillows_to_the_last_bit(self):
        for factor in (0.0, 0.1, 0.73, 1.0, 1.27, 1.9, 3.0):
            self.check("brightness", factor, lambda i: F.adjust_brightness(i, factor))
            self.check("contrast", factor, lambda i: F.adjust_contrast(i, factor))
            self.check("color", factor, lambda i: F.adjust_saturation(i, factor))
            self.check("sharpness", factor, lambda i: F.adjust_sharpness(i, factor))
        for turns in (-0.5, -0.17, 0.0, 0.05, 0.3, 0.5):
            self.check("hue", turns, lambda i: F.adjust_hue(i, turns))
        for bits in range(1, 9):
            self.check("posterize", bits, lambda i: F.posterize(i, bits))
        for threshold in (0, 1, 127.5, 128, 255, 256):
            self.check("solarize", threshold, lambda i: F.solarize(i, threshold))
        self.check("grayscale", 0, lambda i: F.to_grayscale(i, 3))
        self.check("auto_contrast", 0, F.autocontrast)
        self.check("equalize", 0, F.equalize)
        self.check("invert", 0, F.invert)
        self.check("mirror", 0, F.hflip)

    def test_movements(self):
        # Nearest: Pillow's fixed point. A shear by torchvision goes through tan(atan(x)), so that a
        # place on the edge between two pixels may fall on either side; bilinear weights have 8 bits.
        for sampling, interpolation in SAMPLINGS.items():
            kwargs = {"interpolation": interpolation, "fill": list(FILL)}
            tolerance = 0 if sampling == "nearest" else 2
            for degrees in (-135, -9.0, 0, 3.3, 30, 90):
                self.check("rotate", degrees, lambda i: F.rotate(i, degrees, **kwargs), tolerance,
                           sampling)
            for pixels in (-32, -5, 0, 1, 20):
                self.check("translate_x", pixels, lambda i: F.affine(
                    i, 0.0, [pixels, 0], 1.0, [0.0, 0.0], **kwargs), tolerance, sampling)
                self.check("translate_y", pixels, lambda i: F.affine(
                    i, 0.0, [0, pixels], 1.0, [0.0, 0.0], **kwargs), tolerance, sampling)
            for shear in (-0.99, -0.09, 0.0, 0.3):
                resample = getattr(Image.Resampling, sampling.upper())
                self.check("shear_x", shear, lambda i: i.transform(
                    i.size, Image.Transform.AFFINE, (1, shear, 0, 0, 1, 0), resample,
                    fillcolor=FILL), tolerance, sampling)
                self.check("shear_y", shear, lambda i: i.transform(
                    i.size, Image.Transform.AFFINE, (1, 0, 0, shear, 1, 0), resample,
                    fillcolor=FILL), tolerance, sampling)

    def test_shears_are_torchvisions(self):
        # Its own _apply_op, whatever sign it has.
        for shear in (0.09, 0.3):
            for ours, theirs in (("shear_x", "ShearX"), ("shear_y", "ShearY")):
                self.check(ours, shear, lambda i: autoaugment._apply_op(
                    i, theirs, shear, BILINEAR, list(FILL)), 3, "bilinear", mean=0.6)

    def test_gaussian_blur(self):
        for kernel, sigma in ((3, 0.1), (5, 1.0), (13, 2.0), (23, 1.7)):
            self.check(f"blur{kernel}", sigma,
                       lambda i: F.gaussian_blur(i, [kernel, kernel], [sigma, sigma]), 1)

    def test_timms_solarize_add(self):
        for amount in (0, 33, 110):
            self.check("solarize_add", amount, lambda i: auto_augment.solarize_add(i, amount))

    def test_timms_movements(self):
        # Ours turn and move the other way round, which a random sign hides.
        kwargs = {"resample": Image.Resampling.BILINEAR, "fillcolor": FILL}
        self.check("shear_x", 0.21, lambda i: auto_augment.shear_x(i, 0.21, **kwargs), 2, "bilinear")
        self.check("translate_y", -12.6, lambda i: auto_augment.translate_y_abs(i, 12.6, **kwargs),
                   2, "bilinear")
        self.check("rotate", 21, lambda i: auto_augment.rotate(i, 21, **kwargs), 2, "bilinear")

    def test_the_values_of_torchvisions_magnitudes(self):
        # Those that tests/data/augment/magnitudes_test.cpp has are at magnitude 9 of RandAugment.
        space = autoaugment.RandAugment()._augmentation_space(31, (662, 331))
        at_9 = {name: values[9].item() for name, (values, _) in space.items() if values.ndim > 0}
        self.assertAlmostEqual(at_9["ShearX"], 0.09, places=6)
        self.assertEqual(int(at_9["TranslateX"] + 1e-4), 45)
        self.assertEqual(int(at_9["TranslateY"] + 1e-4), 90)
        self.assertAlmostEqual(at_9["Rotate"], 9, places=5)
        self.assertAlmostEqual(at_9["Brightness"], 0.27, places=6)
        self.assertEqual(at_9["Posterize"], 7)
        self.assertAlmostEqual(at_9["Solarize"], 178.5, places=4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
