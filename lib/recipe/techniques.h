// Techniques that reduce a recipe's memory or time, each a change of its keys, for `scaletrain
// bench`.
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

// Returns the unchanged recipe, each technique alone, and common combinations; the global batch
// stays the same. Leaves out techniques that `recipe` already has, or that do not work on
// `world_size` ranks.
std::vector<Technique> techniques(const Recipe& recipe, int world_size = 1);

// Returns activation checkpointing with a budget of half of `activation_bytes`, the recipe's
// activations; nullopt below one megabyte, or if the recipe cannot use it.
std::optional<Technique> half_of_activations(const Recipe& recipe, std::int64_t activation_bytes);

}  // namespace scaletrain::recipe
