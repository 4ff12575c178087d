"""Decoding and resizing against Pillow, and so against torchvision's evaluation transforms."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import pictures
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "data_program")


def fitted(paths, size):
    """[count, size, size, 3] as our program has them."""
    pixels = subprocess.run([PROGRAM, "fit", str(size), *map(str, paths)], check=True, timeout=120,
                            capture_output=True).stdout
    return numpy.frombuffer(pixels, dtype=numpy.uint8).reshape(len(paths), size, size, 3)


def expected(path, size):
    transform = transforms.Compose([
        transforms.Resize(size, InterpolationMode.BILINEAR, antialias=True),
        transforms.CenterCrop(size),
    ])
    with Image.open(path) as image:
        return numpy.asarray(transform(image.convert("RGB")))


class PillowTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.random = numpy.random.default_rng(3)

    def picture(self, width, height, channels=3):
        return pictures.picture(self.random, width, height, channels)

    def save(self, name, image, **options):
        path = self.folder / name
        image.save(path, **options)
        return path

    def test_resizing_png_is_the_same_to_the_last_bit(self):
        shapes = [(8, 8), (32, 32), (7, 13), (1, 1), (1, 50), (100, 33), (333, 250), (250, 333),
                  (64, 65), (65, 64), (67, 64), (500, 375)]
        paths = [self.save(f"{w}x{h}.png", Image.fromarray(self.picture(w, h))) for w, h in shapes]
        for size in (8, 32, 33, 224):
            ours = fitted(paths, size)
            for path, pixels in zip(paths, ours):
                with self.subTest(path=path.name, size=size):
                    numpy.testing.assert_array_equal(pixels, expected(path, size))

    def test_png_of_every_mode(self):
        rgba = Image.fromarray(self.picture(40, 40, 4), "RGBA")
        rgb = rgba.convert("RGB")
        paths = [self.save("l.png", rgb.convert("L")), self.save("1.png", rgb.convert("1")),
                 self.save("p.png", rgb.convert("P")), self.save("la.png", rgba.convert("LA")),
                 self.save("rgba.png", rgba), self.save("rgb.png", rgb),
                 self.save("four.png", rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=4),
                           bits=2)]
        for path, pixels in zip(paths, fitted(paths, 40)):
            with self.subTest(path=path.name):
                numpy.testing.assert_array_equal(pixels, expected(path, 40))

    def test_jpeg_decodes_as_in_pillow(self):
        # Both decode by the same algorithms; another build of libjpeg may round by one.
        paths = []
        for i, (width, height) in enumerate([(64, 64), (97, 61), (300, 200)]):
            image = Image.fromarray(self.picture(width, height))
            for subsampling in (0, 1, 2):
                paths.append(self.save(f"{i}-{subsampling}.jpg", image, quality=90,
                                       subsampling=subsampling))
            paths.append(self.save(f"{i}-progressive.jpg", image, progressive=True))
            paths.append(self.save(f"{i}-grey.jpg", image.convert("L")))
        for path, pixels in zip(paths, fitted(paths, 61)):
            with self.subTest(path=path.name):
                numpy.testing.assert_allclose(pixels.astype(int), expected(path, 61), atol=1)

    def test_cmyk_jpeg_has_pillows_colours(self):
        image = Image.fromarray(self.picture(48, 48)).convert("CMYK")
        path = self.save("cmyk.jpg", image, quality=95)
        numpy.testing.assert_allclose(fitted([path], 48)[0].astype(int), expected(path, 48),
                                      atol=2)


if __name__ == "__main__":
    unittest.main()
