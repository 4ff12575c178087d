// Optimizers that do not take each element by itself.
#pragma once

#include "lib/recipe/sections/optimizer.h"

namespace scaletrain::recipe {

// True if an update needs a whole tensor, or blocks of it.
bool needs_whole_tensors(const Optimizer& optimizer);

}  // namespace scaletrain::recipe
