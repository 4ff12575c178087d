// Counts the floating-point operations of matrix products, convolutions and attention that run on
// this thread: 2 for each multiplication and addition. Element-wise operations, norms, softmax and
// embeddings are not counted, as in PyTorch's FlopCounterMode.
#pragma once

#include <ATen/record_function.h>

#include "lib/units/flops.h"

namespace scaletrain::units {

// Counts while it exists; one at a time on a thread.
class ForwardFlops {
 public:
  ForwardFlops();
  ~ForwardFlops();
  ForwardFlops(const ForwardFlops&) = delete;
  ForwardFlops& operator=(const ForwardFlops&) = delete;

  // FLOPs since construction.
  Flops count() const;

 private:
  at::CallbackHandle handle_;
  Flops start_;
};

}  // namespace scaletrain::units
