// Tensors that evaluation and saved models use in place of the trained ones.
#pragma once

#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns them by name, new tensors or the run's own: the mean of the buffers over the
// data-parallel ranks, and the evaluation weights of an optimizer that has such. Every rank calls
// it.
NamedTensors evaluated_tensors(const Run& run);

}  // namespace scaletrain::train
