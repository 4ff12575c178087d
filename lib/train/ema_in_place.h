// The running mean of the weights where the model's own are, to look at it.
#pragma once

#include "lib/train/buffers.h"
#include "lib/train/run.h"

namespace scaletrain::train {

class EmaInPlace {
 public:
  // The model has the values of the run's ema from here on.
  explicit EmaInPlace(const Run& run);
  ~EmaInPlace();  // gives its own back, bit for bit
  EmaInPlace(const EmaInPlace&) = delete;
  EmaInPlace& operator=(const EmaInPlace&) = delete;

 private:
  KeptTensors own_;
};

}  // namespace scaletrain::train
