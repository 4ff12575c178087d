// Expands patterns and folders of shards in object stores through scaletrain-data.
#pragma once

#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

// Returns the recipe with patterns replaced by shards (lib/recipe/remote_shards.h), checked again.
// Makes no request if there are no patterns. Throws core::Error with scaletrain-data's status, and
// core::RecipeError if the shards found do not fit the recipe.
recipe::Recipe with_remote_shards(recipe::Recipe recipe, const std::string& file);

}  // namespace scaletrain::launcher
