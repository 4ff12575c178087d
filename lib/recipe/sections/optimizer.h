// How the weights are changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/recipe/catalog/values.h"
#include "lib/recipe/sections/section.h"

namespace scaletrain::recipe {

// Parameters that are trained otherwise; one that several fit belongs to the first of them.
struct OptimizerGroup {
  std::string match;                   // a pattern (lib/core/text/glob.h) of their names
  double lr_scale = 1;                 // their lr over what it would be
  std::optional<double> weight_decay;  // theirs, norms and biases among them
};

struct Optimizer : Component {
  double lr = 0;
  double weight_decay = 0;
  std::optional<double> weight_decay_end;  // weight_decay at the end of training
  bool decay_norm_and_bias = false;        // weight decay for norms and biases too
  double layer_decay = 1;  // lr of each layer over that of the next one towards the head
  std::optional<std::int64_t> lr_base_batch;  // lr is multiplied by global batch / this
  std::string lr_scaling = "linear";          // or by the "sqrt" of that
  std::vector<OptimizerGroup> groups;
  bool centralize_gradients = false;  // each output's gradient gets a mean of 0
};

TypePtr describe(Optimizer& value);

// True if it evaluates and saves a mean of the weights itself.
bool is_mean_of_weights(const Optimizer& optimizer);

// No two groups have one pattern.
void check(const Optimizer& optimizer, const Node& tree, Problems& problems);

}  // namespace scaletrain::recipe
