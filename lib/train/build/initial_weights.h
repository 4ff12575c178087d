// Pretrained weights that a fresh run's model starts from.
#pragma once

#include "lib/train/run/run.h"

namespace scaletrain::train {

// In a run with /model/weights: fills the model with them, as rank 0 reads them, which logs a line
// and writes weights.json into the run's folder. Every rank calls it. Throws as
// checkpoint::load_weights.
void take_weights(Run& run);

}  // namespace scaletrain::train
