// Point operations that treat every channel alike, bit for bit as Pillow's ImageEnhance and
// ImageOps.
#pragma once

#include <cstdint>

#include "lib/data/image/image.h"

namespace scaletrain::data {

// Scales the distance of each value from `base` by `factor` (Pillow's Image.blend).
void blend_values(double factor, std::uint8_t base, Image& image);
// Values from `threshold` (0..256) on are inverted.
void solarize(double threshold, Image& image);
// Values below `threshold` (0..255) rise by `amount` (0..255), to 255 at most (timm's SolarizeAdd).
void solarize_add(int amount, int threshold, Image& image);
void posterize(int bits, Image& image);  // 0..8 upper bits are kept
void invert(Image& image);

}  // namespace scaletrain::data
