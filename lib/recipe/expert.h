// Checks of expert parallelism (/parallel/expert) against the rest of a recipe.
#pragma once

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Recipe;

// Adds a problem, with valid numbers, if the model has no experts or the ranks cannot divide them,
// and for options that do not work with expert parallelism.
void check_experts(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
