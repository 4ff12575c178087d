#include "lib/nn/layers/squeeze_excite.h"

#include <ATen/ATen.h>

namespace scaletrain::nn {
namespace {

std::shared_ptr<Conv2d> pointwise(std::int64_t in, std::int64_t out) {
  return std::make_shared<Conv2d>(Conv2d::Options{.in = in, .out = out, .bias = true});
}

}  // namespace

SqueezeExcite::SqueezeExcite(std::int64_t channels, std::int64_t squeezed)
    : fc1_(register_module("fc1", pointwise(channels, squeezed))),
      fc2_(register_module("fc2", pointwise(squeezed, channels))) {}

at::Tensor SqueezeExcite::forward(const at::Tensor& input) const {
  const at::Tensor squeezed = fc1_->forward(input.mean({2, 3}, true)).relu_();
  return input * at::hardsigmoid(fc2_->forward(squeezed));
}

}  // namespace scaletrain::nn
