// The colour that normalises to about 0; transforms fill empty pixels with it.
#pragma once

#include <cmath>

#include "lib/data/augment/ops/affine.h"
#include "lib/recipe/sections/data/data.h"

namespace scaletrain::data {

inline Colour mean_colour(const recipe::Normalize& normalize) {
  Colour colour{};
  for (std::size_t c = 0; c < kChannels; ++c) {
    colour[c] = static_cast<std::uint8_t>(std::lround(255 * normalize.mean[c]));
  }
  return colour;
}

}  // namespace scaletrain::data
