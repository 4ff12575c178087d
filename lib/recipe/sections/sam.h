// Sharpness-aware minimization (SAM).
#pragma once

#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Options of SAM (lib/optim/sam.h).
struct Sam {
  double rho = 0.05;      // radius of the neighbourhood
  bool adaptive = false;  // true: radius relative to each weight's magnitude
};

TypePtr describe(std::optional<Sam>& value);

}  // namespace scaletrain::recipe
