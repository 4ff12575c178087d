// Optimizers that do not take each element by itself.
#pragma once

#include "lib/recipe/sections/optimizer.h"

namespace scaletrain::recipe {

// Whether an update looks at a whole tensor, or at blocks of it.
bool needs_whole_tensors(const Optimizer& optimizer);

}  // namespace scaletrain::recipe
