// A run's optimizer of what this rank has of the model.
#pragma once

#include <memory>
#include <vector>

#include "lib/optim/clip.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// Of what the run's placement gives this rank; where that is parts of tensors and the optimizer
// looks at whole ones, with an owner for each (lib/engine/tensor_owners.h). Every rank calls it.
// Throws core::RecipeError where the optimizer finds nothing that it is for.
std::unique_ptr<optim::Optimizer> make_optimizer(const Run& run);

// What clipping of a step needs to know of the parts; without any, nothing.
optim::Shards shards_of(const Run& run);

}  // namespace scaletrain::train
