// Optimizer settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Parameters with other settings; a parameter that matches several groups belongs to the first.
struct OptimizerGroup {
  std::string match;                   // name pattern (lib/core/text/glob.h)
  double lr_scale = 1;                 // factor of the learning rate
  std::optional<double> weight_decay;  // weight decay, also of norms and biases
};

struct Optimizer : Component {
  double lr = 0;
  double weight_decay = 0;
  std::optional<double> weight_decay_end;  // weight_decay at the end of training
  bool decay_norm_and_bias = false;        // weight decay for norms and biases too
  double layer_decay = 1;  // learning rate of each layer relative to the next one towards the head
  std::optional<std::int64_t> lr_base_batch;  // scales lr by global batch / lr_base_batch
  std::string lr_scaling = "linear";          // or "sqrt": by the square root of that factor
  std::vector<OptimizerGroup> groups;
  bool centralize_gradients = false;  // subtracts the mean of each output's gradient
};

TypePtr describe(Optimizer& value);

// True if the optimizer evaluates and saves averaged weights (schedule-free).
bool is_mean_of_weights(const Optimizer& optimizer);

// Checks that patterns of groups are unique.
void check(const Optimizer& optimizer, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
