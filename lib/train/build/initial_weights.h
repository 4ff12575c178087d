// Pretrained weights that a fresh run's model starts from.
#pragma once

#include "lib/format/weights/weight_files.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// In a run with /model/weights: fills the model with them, as rank 0 reads them, which logs a line
// and writes weights.json into the run's folder. Every rank calls it. Throws as
// checkpoint::load_weights.
void take_weights(Run& run);

// Throws core::CheckpointError if training tokens at a URL have another tokenizer than the weights
// `files` of /model/weights. Reads their card from there.
void check_tokenizer_at_url(const recipe::Recipe& recipe, const format::WeightFiles& files);

}  // namespace scaletrain::train
