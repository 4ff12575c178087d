// Usual learning rates by optimizer and global batch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/recipe/sections/optimizer.h"

namespace scaletrain::recipe {

struct UsualRate {
  double rate = 0;          // usual learning rate for the global batch
  std::string_view source;  // "Goyal et al. 2017"
};

// Returns the usual rate of an optimizer for a global batch of `global` samples; nullopt for an
// optimizer without a row. A published rate is scaled with the batch: linearly for SGD (Goyal et
// al. 2017), by its square root for adaptive optimizers (Malladi et al. 2022). SGD's rate is the
// one that has the same effect with the recipe's momentum: lr / (1 - momentum) is kept.
std::optional<UsualRate> usual_rate(const Optimizer& optimizer, std::int64_t global);

// Returns the optimizer's learning rate for a global batch, scaled if `lr_base_batch` is set.
double scaled_rate(const Optimizer& optimizer, std::int64_t global);

}  // namespace scaletrain::recipe
