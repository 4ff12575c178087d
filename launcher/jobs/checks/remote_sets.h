// Patterns and folders of shards in object stores, by way of scaletrain-data.
#pragma once

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// The recipe with the shards in the place of what stands for several of them
// (lib/recipe/remote_shards.h), checked again. Asks nobody where there is nothing of that kind.
// Throws core::Error of scaletrain-data's status, core::RecipeError for what does not go with the
// shards that were found.
recipe::Recipe with_remote_shards(recipe::Recipe recipe, const std::string& file);

}  // namespace scaletrain::launcher
