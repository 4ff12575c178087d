// Checks that weights belong to a model that computes as the recipe's does, as far as no tensor's
// shape shows it.
#pragma once

#include "lib/format/weights/weight_files.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::exchange {

// Compares what the recipe of a checkpoint, or the config.json of Hugging Face for the same kind of
// model, says of the norms, the rotary positions and a tied head with `model`, but for what its
// /model/weights/allow_other names; without either there is nothing to compare. Throws
// core::CheckpointError naming all keys that differ with both values, or what our model of that
// name does not compute.
void check_same_computation(const recipe::Model& model, const format::WeightFiles& files);

}  // namespace scaletrain::exchange
