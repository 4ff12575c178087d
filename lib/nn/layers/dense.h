// Matrix product of linear layers.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// Computes at::linear: input [..., in], weight [out, in], bias [out] or undefined -> [..., out]. On
// a CPU large fp32 products use oneDNN, forward and backward: ATen uses MKL, which uses half of the
// vector width of an AMD processor (docs/lab/performance.md).
at::Tensor dense(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias = {});

// Returns dense() followed by ReLU.
at::Tensor dense_relu(const at::Tensor& input, const at::Tensor& weight,
                      const at::Tensor& bias = {});

}  // namespace scaletrain::nn
