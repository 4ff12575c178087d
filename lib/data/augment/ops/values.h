// Point operations, the same for each channel, bit for bit as Pillow's ImageEnhance and ImageOps.
#pragma once

#include <cstdint>

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Scales the distance of each value from `base` by `factor` (Pillow's Image.blend).
void blend_values(double factor, std::uint8_t base, Image& image);
// Inverts values from `threshold` (0..256) on.
void solarize(double threshold, Image& image);
// Adds `amount` (0..255) to values below `threshold` (0..255), up to 255 (timm's SolarizeAdd).
void solarize_add(int amount, int threshold, Image& image);
void posterize(int bits, Image& image);  // keeps the upper 0..8 bits
void invert(Image& image);

}  // namespace scaletrain::data
