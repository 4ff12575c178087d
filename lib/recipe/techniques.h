// Ways to train a recipe in less memory or time, each a change of its keys: what `scaletrain bench`
// compares.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/recipe.h"

namespace scaletrain::recipe {

struct Technique {
  std::string name;
  std::vector<std::string> overrides;  // as --set takes them
};

// The recipe as it is, then each technique that changes it alone, then those that are often used
// together; the global batch stays the same. What `recipe` has already, or could not have, is left
// out.
std::vector<Technique> techniques(const Recipe& recipe);

}  // namespace scaletrain::recipe
