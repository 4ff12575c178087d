#include "lib/nn/layers/rms_norm.h"

#include <ATen/ATen.h>

namespace scaletrain::nn {

RmsNorm::RmsNorm(std::int64_t channels, double eps)
    : eps_(eps), weight_(register_parameter("weight", at::empty({channels}))) {}

at::Tensor RmsNorm::forward(const at::Tensor& input) const {
  return at::rms_norm(input, weight_.sizes(), weight_, eps_);
}

void RmsNorm::initialise(const std::string& /*name*/, const at::Tensor& logical,
                         at::Generator /*generator*/) const {
  logical.fill_(1);
}

}  // namespace scaletrain::nn
