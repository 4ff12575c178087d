// Running means of the weights beside those that are trained.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// EMA of the weights: lib/optim/mean.h. A mean for each decay; the first one is the run's ema.
struct Ema {
  std::vector<double> decay{0.9999};  // share of itself that the mean keeps at an update
  bool warmup = false;                // it keeps less at first
  std::int64_t every = 1;             // steps from one update to the next
};

TypePtr describe(std::optional<Ema>& value);

// Checks that the optimizer is not a mean of the weights itself.
void check(const std::optional<Ema>& ema, const Optimizer& optimizer, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
