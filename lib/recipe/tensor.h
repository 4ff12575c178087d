// Checks of tensor parallelism (/parallel/tensor) against the rest of a recipe.
#pragma once

#include "lib/recipe/sections/parallel/parallel.h"

namespace scaletrain::recipe {

struct Recipe;

// Adds a problem, with valid numbers, if the size of /parallel/tensor does not divide the model's
// heads and features, and for options that do not work with tensor parallelism.
void check_tensor(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
