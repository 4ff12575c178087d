// Gradient clipping.
#pragma once

#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Exactly one member is set.
struct Clip {
  std::optional<double> norm;      // largest L2 norm of all gradients as one vector
  std::optional<double> value;     // largest size of each element
  std::optional<double> adaptive;  // largest norm of a unit's gradient over that of its weights
};

TypePtr describe(std::optional<Clip>& value);

}  // namespace scaletrain::recipe
