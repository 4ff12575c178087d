// Changes of an image channel by channel that depend on the values it has: to the last bit what
// Pillow's ImageOps does.
#pragma once

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Of each channel, 0..255 stretched over what the image uses, or used evenly.
void auto_contrast(Image& image);
void equalize(Image& image);

}  // namespace scaletrain::data
