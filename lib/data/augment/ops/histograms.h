// Changes of an image channel by channel that depend on the values it has: to the last bit what
// Pillow's ImageOps does.
#pragma once

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Stretches (auto_contrast) or equalizes (equalize) the histogram of each channel over 0..255.
void auto_contrast(Image& image);
void equalize(Image& image);

}  // namespace scaletrain::data
