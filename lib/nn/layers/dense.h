// The product that linear layers are made of.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// input [..., in], weight [out, in], bias [out] or undefined -> [..., out], as at::linear. On a CPU
// large ones in fp32 are oneDNN's, forward and backward: ATen asks MKL, which uses half of the
// vectors of an AMD processor (docs/lab/performance.md).
at::Tensor dense(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias = {});

// Returns dense() followed by ReLU.
at::Tensor dense_relu(const at::Tensor& input, const at::Tensor& weight,
                      const at::Tensor& bias = {});

}  // namespace scaletrain::nn
