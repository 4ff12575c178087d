// Finds keys that are written but have no effect because of other keys.
//
// These are not errors: a sweep may set a probability to 0, and a base recipe may have more keys
// than needed. Contradictions are refused when the recipe is read (lib/recipe/checks.h).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace scaletrain::recipe {

struct Recipe;

// One sentence for each, "recipe.json:17: /data/lanes: does nothing in the indexed order";
// `origins` says which keys were written and where (key_origins, lib/recipe/load.h). A file with
// every key, as `recipe show` and `checkpoint import` write it, means none of them in particular:
// of such a recipe only what --set wrote is looked at.
std::vector<std::string> idle_keys(const Recipe& recipe,
                                   const std::map<std::string, std::string>& origins);

}  // namespace scaletrain::recipe
