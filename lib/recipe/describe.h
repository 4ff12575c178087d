// The one description of a recipe: every key with its type, default, range and help.
#pragma once

#include <memory>

#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

// A recipe with the defaults that are names from lists ("fp32") chosen.
Recipe blank_recipe(CatalogPtr catalog = built_in_catalog());

// The keys of `recipe`, bound to its members; `recipe` outlives the result and does not move.
std::unique_ptr<Object> describe(Recipe& recipe);

}  // namespace scaletrain::recipe
