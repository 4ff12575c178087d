// Limits the gradients.
#pragma once

#include <optional>

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Clip {
  double norm = 0;  // global L2 norm of the gradients
};

TypePtr describe(std::optional<Clip>& value);

}  // namespace scaletrain::recipe
