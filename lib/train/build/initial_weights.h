// Loads the pretrained weights of a new run.
#pragma once

#include "lib/format/weights/weight_files.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// For a run with /model/weights: rank 0 reads the weights, logs a line and writes weights.json into
// the run's folder; all ranks get them. Collective. Throws the errors of
// checkpoint::load_weights().
void take_weights(Run& run);

// Throws core::CheckpointError if training tokens at a URL have another tokenizer than the weights
// `files` of /model/weights. Reads their card from there.
void check_tokenizer_at_url(const recipe::Recipe& recipe, const format::WeightFiles& files);

}  // namespace scaletrain::train
