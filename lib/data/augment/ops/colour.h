// Changes of an image's colours, to the last bit what Pillow (and torchvision on PIL images) does.
#pragma once

#include <cstdint>

#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

// The mean of the image's luma (ITU-R 601-2), rounded: the base of a change of contrast.
std::uint8_t mean_luma(const Image& image, Scratch& scratch);

void to_grey(Image& image);

// Each pixel `factor` times as far from its grey as it was.
void change_saturation(double factor, Image& image, Scratch& scratch);

// The hue turned by `turns` of the circle, -0.5..0.5, in Pillow's HSV with 8 bits a value.
void turn_hue(double turns, Image& image);

// Each pixel `factor` times as far from the smoothed image as it was; the edge stays.
void change_sharpness(double factor, Image& image, Scratch& scratch);

}  // namespace scaletrain::data
