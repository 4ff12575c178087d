// Contents of a run's checkpoint.
#pragma once

#include <optional>

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns the contents of a checkpoint now, as far as this rank may write them (lib/checkpoint/
// contents.h). Tensors are the run's own, except buffers, evaluation weights and resharded tensors.
// Collective.
checkpoint::Contents snapshot(Run& run);

// Ends training and loads the model of the run's best checkpoint, or its EMA if the run has one,
// but not the optimizer. Returns the training state of that checkpoint, on rank 0; nullopt if the
// checkpoint does not verify, which is a warning, and the model stays. Collective.
std::optional<format::TrainState> load_best_model(Run& run);

}  // namespace scaletrain::train
