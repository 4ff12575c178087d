// Whether the files that a recipe names are there, asked before anything is started.
#pragma once

#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

// Throws core::DataError that names the shards and folders that cannot be read: the first of them
// where there are many. URLs are left to the workers.
void check_sources(const Recipe& recipe);

}  // namespace scaletrain::recipe
