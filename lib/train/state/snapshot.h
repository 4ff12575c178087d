// Contents of a run's checkpoint.
#pragma once

#include <optional>

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns the contents of a checkpoint now, complete on rank 0 alone; the tensors are the run's
// own, except evaluation weights and buffers that differ from them. Every rank calls it.
checkpoint::Contents snapshot(Run& run);

// Ends training, and takes over the model of the run's best checkpoint, where the run has an ema
// its ema, not the optimizer; one that does not verify is warned about and left alone. Every rank
// calls it. The result: on rank 0 where training stood with the model at hand now; nullopt where
// that is the one of before.
std::optional<format::TrainState> load_best_model(Run& run);

}  // namespace scaletrain::train
