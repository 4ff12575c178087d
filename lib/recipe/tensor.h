// Checks of tensor parallelism (/parallel/tensor) against the rest of a recipe.
#pragma once

#include "lib/recipe/sections/parallel/parallel.h"

namespace scaletrain::recipe {

struct Recipe;

// Adds a problem for each number of the model that so many ranks cannot share, naming those that
// could, and for what does not go with parts of layers.
void check_tensor(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
