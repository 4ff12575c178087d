// How the weights are changed.
#pragma once

#include <cstdint>
#include <optional>

#include "lib/recipe/sections/section.h"
#include "lib/recipe/values.h"

namespace scaletrain::recipe {

struct Optimizer : Component {
  double lr = 0;
  double weight_decay = 0;
  bool decay_norm_and_bias = false;  // weight decay for norms and biases too
  double layer_decay = 1;            // lr of each layer over that of the next one towards the head
  std::optional<std::int64_t> lr_base_batch;  // lr is multiplied by global batch / this
};

TypePtr describe(Optimizer& value);

}  // namespace scaletrain::recipe
