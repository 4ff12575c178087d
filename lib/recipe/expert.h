// Checks of expert parallelism (/parallel/expert) against the rest of a recipe.
#pragma once

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Recipe;

// Adds a problem where the model has no experts, or a number that so many ranks cannot share,
// naming numbers that can, and for what does not go with it.
void check_experts(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
