// Weights of evaluation and saved models that differ from the training weights.
#pragma once

#include "lib/optim/mean.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Returns tensors by name: the mean of the buffers over the data-parallel ranks, and the evaluation
// weights of the optimizer if it has any (schedule-free). Tensors are new or the run's own.
// Collective.
NamedTensors evaluated_tensors(const Run& run);

// Swaps averaged weights into the model while it exists.
class MeanInPlace {
 public:
  // Copies the values of `mean`, an average of the run, into the model. Collective.
  MeanInPlace(Run& run, const optim::Mean& mean);
  ~MeanInPlace();  // restores the model's own weights, bit for bit
  MeanInPlace(const MeanInPlace&) = delete;
  MeanInPlace& operator=(const MeanInPlace&) = delete;

 private:
  Run& run_;
  KeptTensors own_;
};

}  // namespace scaletrain::train
