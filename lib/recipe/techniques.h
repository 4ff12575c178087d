// Ways to train a recipe in less memory or time, each a change of its keys: what `scaletrain bench`
// compares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace scaletrain::recipe {

struct Recipe;

struct Technique {
  std::string name;
  std::vector<std::string> overrides;  // as --set takes them
};

// The recipe as it is, then each technique that changes it alone, then those that are often used
// together; the global batch stays the same. Leaves out techniques that `recipe` has already, or
// could not have on `world_size` ranks.
std::vector<Technique> techniques(const Recipe& recipe, int world_size = 1);

// Recomputation to a budget of half of `activation_bytes`, what the activations of `recipe` take as
// it is; nullopt where that is less than a megabyte, or the recipe could not have one.
std::optional<Technique> half_of_activations(const Recipe& recipe, std::int64_t activation_bytes);

}  // namespace scaletrain::recipe
