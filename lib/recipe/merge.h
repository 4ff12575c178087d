// Recipes on top of recipes: "extends" and --set.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

// In both, `keys` describes the tree: a text that is short for an object becomes that object where
// a key below it is set, and a key takes the place of those that it excludes.

// `patch` on top of `base` as RFC 7396 says: objects are merged, null removes, all else replaces.
void merge(Node& base, Node patch, const Object& keys);

// Puts the values of "optimizer.lr=0.1" into `tree`, one after the other. Throws core::RecipeError
// ("--set KEY") for a text without
// "=", and for lists and objects that are not JSON; unknown keys are left to the reading.
void apply_overrides(Node& tree, const std::vector<std::string>& overrides, const Object& keys);

}  // namespace scaletrain::recipe
