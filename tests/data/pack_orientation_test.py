"""`scaletrain data pack`: a picture that is written anew is turned as its EXIF says."""
import io
import json
import os
import subprocess
import unittest

import numpy
from PIL import Image, ImageOps

from pictures import photograph
from tools_support import FolderTest, data, read_bytes

PROGRAM = os.path.abspath(os.path.join(os.environ["SCALETRAIN_BIN"], "data_program"))
ORIENTATION_TAG = 0x0112
MOST_MEAN_DIFFERENCE = 5  # of 255: a JPEG of a JPEG, with colours at half the resolution


def pixels_of(content):
    """What stands in the file, whatever its EXIF says."""
    if content.startswith(b"sctrgb8\n"):
        width, height = numpy.frombuffer(content[8:16], dtype="<u4")
        return numpy.frombuffer(content[16:], dtype=numpy.uint8).reshape(height, width, 3)
    image = Image.open(io.BytesIO(content))
    assert ORIENTATION_TAG not in image.getexif()
    return numpy.asarray(image)


class Orientation(FolderTest):
    def setUp(self):
        super().setUp()
        picture = photograph(70, 48)
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[ORIENTATION_TAG] = orientation
            file = io.BytesIO()
            picture.save(file, "JPEG", quality=95, exif=exif)
            self.write(f"in/a/{orientation}.jpg", file.getvalue())

    def packed(self, extension, *flags):
        """{orientation: the file in the shard}."""
        out = self.path("-".join(map(str, ("out", *flags))).replace(":", ""))
        data("pack", self.path("in"), out, *flags)
        return {orientation: data("get", f"a/{orientation}", out, "--field", extension, text=False)
                for orientation in range(1, 9)}

    def upright(self, orientation):
        return ImageOps.exif_transpose(Image.open(self.path("in", "a", f"{orientation}.jpg")))

    def compare(self, extension, expected, *flags):
        for orientation, content in self.packed(extension, *flags).items():
            with self.subTest(flags=flags, orientation=orientation):
                wanted = numpy.asarray(expected(self.upright(orientation)), dtype=int)
                found = pixels_of(content)
                self.assertEqual(wanted.shape, found.shape)
                difference = numpy.abs(wanted - found)
                if extension == "jpg":
                    self.assertLess(difference.mean(), MOST_MEAN_DIFFERENCE)
                else:
                    self.assertEqual(0, difference.max())

    def test_png_and_webp_are_turned_too(self):
        for kind, options in (("png", {}), ("webp", {"lossless": True})):
            folder = self.path("of " + kind, "a")
            os.makedirs(folder)
            for orientation in range(1, 9):
                exif = Image.Exif()
                exif[ORIENTATION_TAG] = orientation
                photograph(70, 48).save(f"{folder}/{orientation}.{kind}", exif=exif, **options)
            out = self.path("out " + kind)
            data("pack", self.path("of " + kind), out, "--reencode", "png")
            for orientation in range(1, 9):
                upright = ImageOps.exif_transpose(Image.open(f"{folder}/{orientation}.{kind}"))
                found = pixels_of(data("get", f"a/{orientation}", out, text=False))
                numpy.testing.assert_array_equal(numpy.asarray(upright.convert("RGB")), found)
            copied = self.path("copied " + kind)
            data("pack", self.path("of " + kind), copied)
            self.assertNotEqual(self.trained_on(copied, True), self.trained_on(copied, False))
            self.assertEqual(self.trained_on(out, True), self.trained_on(out, False))

    def test_plain_pixels_stand_upright(self):
        self.compare("png", lambda image: image, "--reencode", "png")
        self.compare("rgb8", lambda image: image, "--reencode", "raw")

    def test_jpegs_stand_upright(self):
        self.compare("jpg", lambda image: image, "--reencode", "jpeg:95")

    def test_the_shorter_side_is_that_of_the_upright_picture(self):
        def resized(image):  # 70 * 24 / 48 = 35
            size = (35, 24) if image.width > image.height else (24, 35)
            return image.resize(size, Image.Resampling.BILINEAR)
        self.compare("rgb8", resized, "--resize", 24, "--reencode", "raw")
        self.compare("jpg", resized, "--resize", 24)

    def trained_on(self, out, exif_orientation):
        """What training reads of a set: a line with a hash for each picture."""
        recipe = {"seed": 3, "model": {"name": "mlp", "num_classes": 2}, "steps": 1,
                  "optimizer": {"name": "sgd", "lr": 1}, "batch": {"global": 8, "per_device": 8},
                  "data": {"train": {"shards": f"{out}/train-000000.tar", "augment": []},
                           "image_size": 16, "exif_orientation": exif_orientation}}
        path = self.write("recipe.json", json.dumps(recipe))
        return subprocess.run([PROGRAM, "content", path, "1", "1", "0", "1"], check=True,
                              stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def test_the_recipe_changes_nothing_any_more(self):
        for encoding in ("jpeg:95", "png", "raw"):
            out = self.path("new" + encoding[:3])
            data("pack", self.path("in"), out, "--reencode", encoding)
            self.assertEqual(self.trained_on(out, True), self.trained_on(out, False))
        data("pack", self.path("in"), self.path("copied"))
        self.assertNotEqual(self.trained_on(self.path("copied"), True),
                            self.trained_on(self.path("copied"), False))

    def test_a_copy_keeps_its_bytes_and_its_tag(self):
        for flags in ([], ["--skip-bad"]):
            for orientation, content in self.packed("jpg", *flags).items():
                self.assertEqual(read_bytes(self.path("in", "a", f"{orientation}.jpg")), content)


if __name__ == "__main__":
    unittest.main()
