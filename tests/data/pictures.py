"""Pictures for tests, as photographs are: smooth parts, edges, some noise."""
import numpy
from PIL import Image


def picture(random, width, height, channels=3):
    """[height, width, channels] uint8."""
    coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, channels), dtype=numpy.uint8)
    bands = [Image.fromarray(coarse[..., c]).resize((width, height), Image.Resampling.BICUBIC)
             for c in range(channels)]
    image = numpy.stack([numpy.asarray(band) for band in bands], axis=-1).astype(int)
    image += random.integers(-20, 21, image.shape)
    return numpy.clip(image, 0, 255).astype(numpy.uint8)


def photograph(width, height, left=0, top=0):
    """A part of one of scikit-learn's two photographs, resized."""
    from sklearn.datasets import load_sample_images
    image = Image.fromarray(load_sample_images().images[0])
    return image.crop((left, top, image.width, image.height)).resize((width, height))
