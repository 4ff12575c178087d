// Counts the floating-point operations of matrix products, convolutions and attention that run on
// this thread: 2 for each multiplication and addition. Element-wise operations, norms, softmax and
// embeddings are not counted, as in PyTorch's FlopCounterMode.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>

namespace scaletrain::units {

struct Flops {
  double products = 0;   // matrix products and convolutions
  double attention = 0;  // fused attention, as if it were not causal

  // Backward of trained layers: the gradients of inputs and of weights are products as large as
  // the forward one. Fused attention computes its scores again: five products for two.
  double backward() const {
    constexpr double kProducts = 2, kAttention = 2.5;
    return kProducts * products + kAttention * attention;
  }
  double forward() const { return products + attention; }
  Flops& operator+=(const Flops& other) {
    products += other.products;
    attention += other.attention;
    return *this;
  }
  Flops operator-(const Flops& other) const {
    return {products - other.products, attention - other.attention};
  }
};

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
