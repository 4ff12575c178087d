// Resize filters by their names in recipes.
#pragma once

#include <string_view>

#include "lib/data/image/view.h"

namespace scaletrain::data {

inline Filter filter_named(std::string_view name) {
  return name == "bicubic" ? Filter::kBicubic : Filter::kBilinear;
}

}  // namespace scaletrain::data
