// Optimizers whose update is not elementwise.
#pragma once

#include "lib/recipe/sections/optimizer.h"

namespace scaletrain::recipe {

// True if an update needs full tensors, or blocks of them.
bool needs_whole_tensors(const Optimizer& optimizer);

}  // namespace scaletrain::recipe
