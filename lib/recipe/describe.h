// Description of all recipe keys: type, default, range and help of each.
#pragma once

#include <memory>

#include "lib/recipe/recipe.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

// Returns a recipe with its defaults, including those that are names in lists ("fp32").
Recipe blank_recipe(CatalogPtr catalog = built_in_catalog());

// Returns the keys of `recipe`, bound to its members; `recipe` must outlive the result and not
// move.
std::unique_ptr<Object> describe(Recipe& recipe);

}  // namespace scaletrain::recipe
