// A run's optimizer of what this rank has of the model.
#pragma once

#include <memory>
#include <vector>

#include "lib/optim/clip.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Makes the optimizer of this rank's local shards; if the optimizer needs full tensors, each has an
// owner rank (lib/engine/tensor_owners.h). Every rank calls it. Throws core::RecipeError where the
// optimizer finds nothing that it is for.
std::unique_ptr<optim::Optimizer> make_optimizer(const Run& run);

// Returns the shards that gradient clipping must know of; empty if nothing is sharded.
optim::ShardedParameters shards_of(const Run& run);

}  // namespace scaletrain::train
