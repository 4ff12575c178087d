// What the model is evaluated and saved with, where that is not what is trained.
#pragma once

#include "lib/train/buffers.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// By name, new tensors or the run's own: the mean of the buffers over the data coordinates, and the
// weights of an optimizer that has others for it. Every rank calls it.
NamedTensors evaluated_tensors(const Run& run);

}  // namespace scaletrain::train
