// Checks of context parallelism (/parallel/context) against the rest of a recipe.
#pragma once

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Recipe;

// Adds a problem where the model or its task has no sequences that so many ranks can share, naming
// numbers that fit, and for what does not go with it.
void check_shared_sequences(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
