#include "lib/nn/layers/rotary.h"

#include <ATen/ATen.h>

#include <numbers>

namespace scaletrain::nn {
namespace {

// Radians a position, [head_dim / 2], in fp32 as transformers computes them: at far positions their
// rounding is seen.
at::Tensor frequencies(const Rotary::Options& options) {
  const at::Tensor exponents =
      at::arange(0, options.head_dim, 2, at::kLong).to(at::kFloat) / options.head_dim;
  const at::Tensor plain = 1.0 / at::pow(options.theta, exponents);
  const RotaryScaling& scaling = options.scaling;
  if (scaling.kind == RotaryScaling::Kind::kNone) return plain;
  const at::Tensor slow = plain / scaling.factor;
  if (scaling.kind == RotaryScaling::Kind::kLinear) return slow;
  const at::Tensor turns =  // of the original sequence
      static_cast<double>(scaling.original) * plain / (2 * std::numbers::pi);
  const at::Tensor fast_share = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1);
  return (1 - fast_share) * slow + fast_share * plain;
}

// Rotates by the angles of each token, [tokens, head_dim / 2].
at::Tensor turn(const at::Tensor& input, const at::Tensor& cosines, const at::Tensor& sines) {
  const auto halves = input.chunk(2, -1);
  return at::cat({halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines},
                 -1);
}

}  // namespace

Rotary::Rotary(const Options& options) {
  const at::Tensor positions = at::arange(options.positions, at::kFloat);
  const at::Tensor angles = at::outer(positions, frequencies(options));
  cosines_ = angles.cos();
  sines_ = angles.sin();
}

void Rotary::move_to(at::Device device) {
  if (cosines_.device() == device) return;
  cosines_ = cosines_.to(device);
  sines_ = sines_.to(device);
}

at::Tensor Rotary::forward(const at::Tensor& input, std::int64_t first) {
  move_to(input.device());
  const auto rows = [&](const at::Tensor& table) {
    return table.narrow(0, first, input.size(2)).to(input.scalar_type());
  };
  return turn(input, rows(cosines_), rows(sines_));
}

at::Tensor Rotary::forward(const at::Tensor& input, const at::Tensor& places) {
  move_to(input.device());
  const auto rows = [&](const at::Tensor& table) {
    return table.index_select(0, places).to(input.scalar_type());
  };
  return turn(input, rows(cosines_), rows(sines_));
}

}  // namespace scaletrain::nn
