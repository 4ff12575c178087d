// Activation checkpointing: units whose activations backward recomputes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Exactly one member is set.
struct Recompute {
  std::optional<std::string> units;   // "none", "all"
  std::optional<std::int64_t> every;  // recomputes the first of every `every` units
  std::vector<std::string> match;     // name patterns (lib/core/text/glob.h)
  // Memory limit of activations in megabytes; as few units as possible are recomputed
  // (lib/engine/recompute_budget.h).
  std::optional<std::int64_t> budget_mb = {};

  bool is_none() const { return units == "none"; }
};

TypePtr describe(std::optional<Recompute>& value);

void check(const std::optional<Recompute>& recompute, const Model& model, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
