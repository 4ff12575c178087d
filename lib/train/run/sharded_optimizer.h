// Optimizer of this rank's parameters or shards.
#pragma once

#include <memory>
#include <vector>

#include "lib/optim/clip.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Makes the optimizer of this rank's local shards; if the optimizer needs full tensors, each has an
// owner rank (lib/engine/tensor_owners.h). All ranks call it. Throws core::RecipeError if the
// optimizer has no suitable parameter, such as muon without a matrix.
std::unique_ptr<optim::Optimizer> make_optimizer(const Run& run);

// Returns the shards that gradient clipping must know of; empty if nothing is sharded.
optim::ShardedParameters shards_of(const Run& run);

}  // namespace scaletrain::train
