// The numbers that ranks exchange which hold a model together.
#pragma once

#include "lib/nn/model.h"
#include "lib/parallel/placement.h"

namespace scaletrain::recipe {
struct Recipe;
}

namespace scaletrain::train {

// Puts them into `sharding`, which has the model's units. What is gathered as bf16 is what autocast
// would make bf16 copies of: weights and biases of linear layers and convolutions; not those of a
// last unit that runs in chunks, whose gradients are added up over them in the weights' type.
void take_types(const recipe::Recipe& recipe, nn::Model& model, parallel::Sharding& sharding);

}  // namespace scaletrain::train
