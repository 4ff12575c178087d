// Affine transforms of an image (rotation, shear, translation); its size stays.
//
// Nearest: to the last bit Pillow's Image.transform(AFFINE), which works in 16-bit fixed point.
// Bilinear: Pillow's too, but weights have 8 bits; values differ by 2 at most.
#pragma once

#include <array>
#include <cstdint>

#include "lib/data/augment/ops/scratch.h"
#include "lib/data/image/image.h"

namespace scaletrain::data {

// Inverse map: output pixel (x, y) is read at (a x + b y + c, d x + e y + f) of the input.
struct Affine {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

enum class Sampling { kNearest, kBilinear };

using Colour = std::array<std::uint8_t, kChannels>;

// Places outside the image become `fill`.
void apply_affine(const Affine& affine, Sampling sampling, const Colour& fill, Image& image,
                  Scratch& scratch);

// Counter-clockwise about the middle, as Pillow's Image.rotate.
Affine rotation(double degrees, std::int64_t width, std::int64_t height);

}  // namespace scaletrain::data
