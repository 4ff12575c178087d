// Merges recipes: "extends" and --set.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/schema/node.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

// `keys` describes the recipe's keys in both functions. A text that is short for an object is
// expanded before a key below it is set, and a key replaces the keys that it excludes.

// Merges `patch` into `base` as in RFC 7396 (JSON Merge Patch): objects are merged, null removes,
// anything else replaces.
void merge(Node& base, Node patch, const Object& keys);

// Sets the values of "optimizer.lr=0.1" in `tree`, one after the other. Throws core::RecipeError
// ("--set KEY") for a text without "=", and for lists and objects that are not JSON; unknown keys
// are reported when the tree is read.
void apply_overrides(Node& tree, const std::vector<std::string>& overrides, const Object& keys);

}  // namespace scaletrain::recipe
