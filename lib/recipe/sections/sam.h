// Gradients from where the loss is highest nearby.
#pragma once

#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Sharpness-aware minimisation (lib/optim/sam.h).
struct Sam {
  double rho = 0.05;      // radius of what is nearby
  bool adaptive = false;  // the radius is in units of each weight's size
};

TypePtr describe(std::optional<Sam>& value);

}  // namespace scaletrain::recipe
