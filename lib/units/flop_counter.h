// Counts the floating-point operations of matrix products, convolutions and attention that run: 2
// for each multiplication and addition. Element-wise operations, norms, softmax and embeddings are
// not counted, as in PyTorch's FlopCounterMode.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>

#include "lib/units/flops.h"

namespace scaletrain::units {

struct PassFlops {
  Flops forward, backward;
  Flops recomputed;  // forward again in backward, by activation checkpointing

  PassFlops operator-(const PassFlops& other) const {
    return {forward - other.forward, backward - other.backward, recomputed - other.recomputed};
  }
};

// Counts while it exists, at a cost of 1 to 3 us for each operation. One at a time on a thread, and
// only one of all threads.
class FlopCounter {
 public:
  // kAll counts the threads of autograd and of a pipeline too.
  enum class Threads : std::uint8_t { kThis, kAll };

  explicit FlopCounter(Threads threads);
  ~FlopCounter();
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  // FLOPs since construction.
  PassFlops count() const;

 private:
  Threads threads_;
  at::CallbackHandle handle_;
  PassFlops start_;
};

}  // namespace scaletrain::units
