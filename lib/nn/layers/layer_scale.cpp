#include "lib/nn/layers/layer_scale.h"

#include <ATen/ATen.h>

namespace scaletrain::nn {

LayerScale::LayerScale(std::int64_t channels, double start)
    : start_(start), gamma_(register_parameter("gamma", at::empty({channels}))) {}

at::Tensor LayerScale::forward(const at::Tensor& branch) const { return branch * gamma_; }

void LayerScale::initialise(const std::string& /*name*/, const at::Tensor& logical,
                            at::Generator /*generator*/) const {
  logical.fill_(start_);
}

}  // namespace scaletrain::nn
