// Replacement for the matrix product of linear layers, such as fp8, made by a precision and called
// by nn::Linear.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace scaletrain::units {

// Multiplies input [..., in] by weight [out, in] and adds bias [out] if that is defined: [...,
// out]; supports autograd. Empty: at::linear.
using LinearProduct = std::function<at::Tensor(const at::Tensor& input, const at::Tensor& weight,
                                               const at::Tensor& bias)>;

}  // namespace scaletrain::units
