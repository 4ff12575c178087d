// Floating-point operations of forward, and how kernels of our own announce theirs.
#pragma once

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

// Call in the forward of a kernel that ATen does not dispatch, on the thread that runs the model,
// so that ForwardFlops counts it (lib/units/forward_flops.h).
void announce_flops(const Flops& flops);

}  // namespace scaletrain::units
