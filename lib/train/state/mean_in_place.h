// Swaps averaged weights (EMA, SWA) into the model for evaluation.
#pragma once

#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class MeanInPlace {
 public:
  // Swaps the values of `mean`, an average of the run, into the model. Collective.
  MeanInPlace(Run& run, const optim::Mean& mean);
  ~MeanInPlace();  // restores the model's weights, bit for bit
  MeanInPlace(const MeanInPlace&) = delete;
  MeanInPlace& operator=(const MeanInPlace&) = delete;

 private:
  Run& run_;
  KeptTensors own_;
};

}  // namespace scaletrain::train
