// Activation checkpointing: units whose activations backward computes again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Exactly one of the four says which.
struct Recompute {
  std::optional<std::string> units;   // "none", "all"
  std::optional<std::int64_t> every;  // the first of so many, again and again
  std::vector<std::string> match;     // patterns (lib/core/text/glob.h) of their names
  // Megabytes that activations may take: as few as keep to it (lib/engine/recompute_budget.h).
  std::optional<std::int64_t> budget_mb = {};

  bool is_none() const { return units == "none"; }
};

TypePtr describe(std::optional<Recompute>& value);

void check(const std::optional<Recompute>& recompute, const Model& model, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
