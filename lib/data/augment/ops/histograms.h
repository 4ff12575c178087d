// Histogram operations on each channel of an image, bit for bit as Pillow's ImageOps.
#pragma once

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Stretches (auto_contrast) or equalizes (equalize) the histogram of each channel over 0..255.
void auto_contrast(Image& image);
void equalize(Image& image);

}  // namespace scaletrain::data
