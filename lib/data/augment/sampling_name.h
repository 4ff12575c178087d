// Interpolation methods for moved pixels, by their names in recipes.
#pragma once

#include <string_view>

#include "lib/data/augment/ops/affine.h"

namespace scaletrain::data {

inline Sampling sampling_named(std::string_view name) {
  return name == "bilinear" ? Sampling::kBilinear : Sampling::kNearest;
}

}  // namespace scaletrain::data
