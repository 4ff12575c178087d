// Exponential moving averages (EMA) of the weights.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// EMA of the weights (lib/optim/mean.h), one for each decay; the first one is the run's "ema".
struct Ema {
  std::vector<double> decay{0.9999};  // share that the average keeps at an update
  bool warmup = false;                // smaller decay at first
  std::int64_t every = 1;             // steps between updates
};

TypePtr describe(std::optional<Ema>& value);

// Checks that the optimizer does not average the weights itself.
void check(const std::optional<Ema>& ema, const Optimizer& optimizer, const Node& tree,
           Problems& problems);

}  // namespace scaletrain::recipe
