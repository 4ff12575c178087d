// A running mean of the weights beside those that are trained.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Of what it does: lib/optim/ema.h.
struct Ema {
  double decay = 0.9999;   // share of itself that the mean keeps at an update
  bool warmup = false;     // it keeps less at first
  std::int64_t every = 1;  // steps from one update to the next
};

TypePtr describe(std::optional<Ema>& value);

// That the optimizer is not a mean of the weights itself.
void check(const std::optional<Ema>& ema, const Optimizer& optimizer, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
