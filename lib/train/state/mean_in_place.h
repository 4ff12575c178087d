// A mean of the weights where the model's own are, to look at it.
#pragma once

#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

class MeanInPlace {
 public:
  // The model has the values of `mean`, one of the run's, from here on. Every rank calls it.
  MeanInPlace(Run& run, const optim::Mean& mean);
  ~MeanInPlace();  // gives its own back, bit for bit
  MeanInPlace(const MeanInPlace&) = delete;
  MeanInPlace& operator=(const MeanInPlace&) = delete;

 private:
  Run& run_;
  KeptTensors own_;
};

}  // namespace scaletrain::train
