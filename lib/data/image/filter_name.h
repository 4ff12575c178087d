// Filters by the names that recipes have for them.
#pragma once

#include <string_view>

#include "lib/data/image/view.h"

namespace scaletrain::data {

inline Filter filter_named(std::string_view name) {
  return name == "bicubic" ? Filter::kBicubic : Filter::kBilinear;
}

}  // namespace scaletrain::data
