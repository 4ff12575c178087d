// What a fresh run's model starts from in place of its initialisation.
#pragma once

#include "lib/train/run.h"

namespace scaletrain::train {

// On rank 0 of a run with /model/weights: fills the model with them, logs a line and writes
// weights.json into the run's folder; the other ranks get them as every initial model
// (lib/train/replicate.h). Throws as checkpoint::load_weights.
void take_weights(Run& run);

}  // namespace scaletrain::train
