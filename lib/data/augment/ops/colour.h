// Colour changes of an image, bit for bit as in Pillow (and torchvision on PIL images).
#pragma once

#include <cstdint>

#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

// Returns the rounded mean luma (ITU-R 601-2) of the image, the base of a contrast change.
std::uint8_t mean_luma(const Image& image, Scratch& scratch);

void to_grey(Image& image);

// Scales the distance of each pixel from its grey value by `factor`.
void change_saturation(double factor, Image& image, Scratch& scratch);

// Rotates the hue by `turns` of a full circle, -0.5..0.5, in Pillow's 8-bit HSV.
void turn_hue(double turns, Image& image);

// Scales the distance of each pixel from the smoothed image by `factor`; edge pixels do not change.
void change_sharpness(double factor, Image& image, Scratch& scratch);

}  // namespace scaletrain::data
