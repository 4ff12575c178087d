// Stochastic weight averaging (SWA): equal average of the weights from some step on.
#pragma once

#include <optional>
#include <string>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/model.h"
#include "lib/recipe/sections/optimizer.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Options of SWA (lib/optim/mean.h, lib/optim/swa_lr.h).
struct Swa {
  std::optional<Duration> start;  // start of averaging; default: 3/4 of training
  Duration every{Duration::Unit::kEpochs, 1};
  std::optional<double> lr;  // SWA learning rate; nullopt: the schedule's
  Duration anneal{Duration::Unit::kEpochs, 10};
  std::string anneal_strategy = "cos";  // or "linear"
};

TypePtr describe(std::optional<Swa>& value);

// Checks that nothing else averages the weights.
void check(const std::optional<Swa>& swa, bool has_ema, const Optimizer& optimizer,
           const Node& tree, Problems& problems);
// Refuses models whose BatchNorm statistics would not fit the averaged weights.
void check(const std::optional<Swa>& swa, const Model& model, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
