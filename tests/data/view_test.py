"""Views of JPEGs, decoded in part and shrunk, against decoding, cropping and resizing in Pillow."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import pictures
from PIL import Image

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "data_program")


def view(path, box, size, resample):
    left, top, right, bottom = box
    pixels = subprocess.run(
        [PROGRAM, "view", str(size), resample, str(left), str(top), str(right - left),
         str(bottom - top), str(path)], check=True, timeout=60, capture_output=True).stdout
    return numpy.frombuffer(pixels, dtype=numpy.uint8).reshape(size, size, 3).astype(int)


def expected(path, box, size, resample):
    with Image.open(path) as image:
        part = image.convert("RGB").crop(box)
    # Horizontally and then vertically: from version 13 on Pillow at times does it the other way round.
    for shape in ((size, part.height), (size, size)):
        part = part.resize(shape, Image.Resampling[resample.upper()])
    return numpy.asarray(part).astype(int)


class ViewTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.random = numpy.random.default_rng(5)

    def boxes(self, width, height, least, count=12):
        """Boxes of at least `least` on each side."""
        for _ in range(count):
            w, h = self.random.integers(least, [width + 1, height + 1])
            left = self.random.integers(0, width - w + 1)
            top = self.random.integers(0, height - h + 1)
            yield left, top, left + w, top + h

    def test_a_part_that_is_not_shrunk_differs_by_one_at_most(self):
        # By nothing from our own whole picture (tests/data/image/jpeg_test.cpp); another build of libjpeg
        # may round by one.
        for subsampling in (0, 1, 2):
            for progressive in (False, True):
                path = self.folder / "photograph.jpg"
                pictures.photograph(500, 375).save(path, quality=90, subsampling=subsampling,
                                                   progressive=progressive)
                for box in self.boxes(500, 375, 20, count=6):
                    for resample in ("bilinear", "bicubic"):
                        with self.subTest(box=box, subsampling=subsampling, resample=resample):
                            difference = abs(view(path, box, 224, resample)
                                             - expected(path, box, 224, resample))
                            self.assertLessEqual(difference.max(), 1)

    def test_a_shrunk_view_is_within_its_tolerance(self):
        # Stated in lib/data/image/decode.h. A box of 4, 8 and 16 times the size is decoded at 1/2, 1/4
        # and 1/8.
        path = self.folder / "photograph.jpg"
        pictures.photograph(1280, 960).save(path, quality=90)
        means, most = [], []
        for size, least in ((64, 64 * 4), (60, 60 * 8), (40, 40 * 16)):
            for box in self.boxes(1280, 960, least):
                for resample in ("bilinear", "bicubic"):
                    difference = abs(view(path, box, size, resample)
                                     - expected(path, box, size, resample))
                    means.append(difference.mean())
                    most.append(difference.max())
        print(f"shrunk: mean {max(means):.3f} at most, single value {max(most)} at most")
        self.assertLess(max(means), 1)
        self.assertLessEqual(max(most), 20)
        self.assertGreater(max(most), 1, "nothing was shrunk")


if __name__ == "__main__":
    unittest.main()
