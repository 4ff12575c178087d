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

// Returns one sentence for each unused key: "recipe.json:17: /data/lanes: does nothing in the
// indexed order". `origins` has the keys that were written, and where (key_origins,
// lib/recipe/load.h). A file that has every key, as `recipe show` and `checkpoint import` write it,
// is not meant key by key: then only keys from --set are examined.
std::vector<std::string> idle_keys(const Recipe& recipe,
                                   const std::map<std::string, std::string>& origins);

}  // namespace scaletrain::recipe
