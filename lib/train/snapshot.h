// What a checkpoint of a run holds.
#pragma once

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// What a checkpoint holds now, whole on rank 0 alone; the tensors are the run's own, but for the
// mean of the ranks' buffers. Every rank calls it.
checkpoint::Contents snapshot(Run& run);

// Takes over the model of the run's best checkpoint, not its optimizer; one that does not verify
// is warned about and left alone. Every rank calls it. The result, on rank 0: where training stood
// with the model at hand now.
format::TrainState load_best_model(Run& run);

}  // namespace scaletrain::train
