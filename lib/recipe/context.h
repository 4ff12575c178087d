// Checks of context parallelism (/parallel/context) against the rest of a recipe.
#pragma once

#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

struct Recipe;

// Adds a problem, with valid numbers, if the sequences of the model cannot be divided among this
// number of ranks, and for options that do not work with context parallelism.
void check_shared_sequences(const Recipe& recipe, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
