// Checks that weights belong to a model that computes the same as the recipe's, in aspects that no
// tensor shape shows.
#pragma once

#include "lib/format/weights/weight_files.h"
#include "lib/recipe/sections/model.h"

namespace scaletrain::exchange {

// Compares norms, rotary positions and weight tying of `model` with the recipe of the checkpoint or
// a Hugging Face config.json for the same kind of model, except keys in /model/weights/allow_other;
// without either file nothing is compared. Throws core::CheckpointError naming all keys that differ
// with both values, or a setting that the model does not support.
void check_same_computation(const recipe::Model& model, const format::WeightFiles& files);

}  // namespace scaletrain::exchange
