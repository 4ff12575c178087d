"""Pictures as an evaluation sees them, against torchvision's and timm's transforms."""
import io
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy
import pictures
import torch
from PIL import Image
from timm.data import create_transform
from torchvision import transforms

from tools_support import write_tar

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "augment_program")


class EvaluationTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        random = numpy.random.default_rng(6)
        shapes = [(300, 260), (256, 256), (90, 200), (333, 227), (40, 41)]
        self.images = [Image.fromarray(pictures.picture(random, *shape)) for shape in shapes]
        members = []
        for i, image in enumerate(self.images):
            file = io.BytesIO()
            image.save(file, "PNG")
            members += [(f"{i}.png", file.getvalue()), (f"{i}.cls", b"0")]
        self.shard = write_tar(str(pathlib.Path(folder.name) / "a.tar"), members)

    def check(self, size, resize, resample, transform):
        pixels = subprocess.run(
            [PROGRAM, "evaluate", str(size), str(resize), resample, self.shard], check=True,
            timeout=120, capture_output=True).stdout
        ours = numpy.frombuffer(pixels, numpy.uint8).reshape(len(self.images), size, size, 3)
        for i, (image, found) in enumerate(zip(self.images, ours)):
            with self.subTest(image=i, size=size, resize=resize):
                differ = abs(found.astype(int) - numpy.asarray(transform(image)))
                # From version 13 on Pillow resizes tall pictures vertically first, which rounds
                # otherwise; all else is the same to the last bit.
                self.assertLessEqual(differ.max(), 2 if image.height > 2 * image.width else 0)

    def test_torchvisions_reference(self):
        for size, resize in ((224, 256), (224, 232), (64, 73), (33, 0)):
            self.check(size, resize, "bilinear", transforms.Compose([
                transforms.Resize(resize or size, antialias=True), transforms.CenterCrop(size)]))

    def test_timms_crop_of_0_875(self):
        # 224 / 0.875 = 256, 64 / 0.875 = 73.1
        for size, resize in ((224, 256), (64, 73)):
            peer = create_transform(size, is_training=False, interpolation="bicubic",
                                    crop_pct=0.875, normalize=False)
            self.check(size, resize, "bicubic", lambda image: peer(image).permute(1, 2, 0))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
