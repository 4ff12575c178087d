// Floating-point operations (FLOPs) of a model, and how kernels of our own announce theirs.
#pragma once

#include <cstdint>

namespace scaletrain::units {

struct Flops {
  double products = 0;   // matrix products and convolutions
  double attention = 0;  // fused attention, as if it were not causal
  double masked = 0;     // part of `attention` that a causal mask leaves out

  // Backward of trained layers: the gradients of inputs and of weights are products as large as
  // the forward one. Fused attention computes its scores again: five products for two.
  double backward() const {
    constexpr double kProducts = 2, kAttention = 2.5;
    return kProducts * products + kAttention * attention;
  }
  double forward() const { return products + attention; }
  // All that was counted, without masked pairs of causal attention.
  double counted() const { return products + attention - masked; }
  Flops& operator+=(const Flops& other) {
    products += other.products;
    attention += other.attention;
    masked += other.masked;
    return *this;
  }
  Flops operator-(const Flops& other) const {
    return {products - other.products, attention - other.attention, masked - other.masked};
  }
};

// Pass of a training step to which operations belong. Operations that autograd runs are backward
// (lib/units/flop_counter.h).
enum class FlopPass : std::uint8_t {
  kForward,
  kBackward,
  kRecomputed,  // forward again, by activation checkpointing
  kNone,        // no part of the model: not counted
};

// While it exists, operations of this thread outside autograd's nodes belong to `pass`.
class FlopPassScope {
 public:
  explicit FlopPassScope(FlopPass pass);
  ~FlopPassScope();
  FlopPassScope(const FlopPassScope&) = delete;
  FlopPassScope& operator=(const FlopPassScope&) = delete;

 private:
  FlopPass before_;
};

// Attention of `queries` to `keys` positions in `heads` heads, all samples together: two matrix
// products forward, five backward, which computes the scores again.
struct AttentionSize {
  double heads = 0, queries = 0, keys = 0;
  double head_dim = 0, value_dim = 0;
  bool causal = false;  // query i attends to keys 0..i

  Flops forward() const;
  Flops backward() const;
};

// Call in a kernel that ATen does not dispatch, on the thread that runs the model or autograd's
// node, so that a FlopCounter counts it.
void announce_flops(const Flops& flops);

}  // namespace scaletrain::units
