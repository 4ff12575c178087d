// Communication dtypes of sharded parameters.
#pragma once

#include "lib/nn/model.h"
#include "lib/parallel/placement.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Sets them in `sharding`, which has the model's units. The all-gather is in bf16 for parameters
// that autocast casts to bf16: weights and biases of linear layers and convolutions. Except in a
// last unit that runs in chunks: it accumulates gradients over the chunks in the weights' dtype.
void take_types(const recipe::Recipe& recipe, nn::Model& model,
                parallel::ShardingOptions& sharding);

}  // namespace scaletrain::train
