// Affine transforms of an image (rotation, shear, translation); the size does not change.
//
// Nearest sampling is bit for bit as Pillow's Image.transform(AFFINE), in 16-bit fixed point.
// Bilinear sampling follows Pillow with 8-bit weights; values differ by at most 2.
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

// Positions outside the image become `fill`.
void apply_affine(const Affine& affine, Sampling sampling, const Colour& fill, Image& image,
                  Scratch& scratch);

// Rotation counter-clockwise about the centre, as Pillow's Image.rotate.
Affine rotation(double degrees, std::int64_t width, std::int64_t height);

}  // namespace scaletrain::data
