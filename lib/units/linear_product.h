// Another way to multiply in linear layers, made by a precision and used by nn::Linear, which do
// not know each other.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace scaletrain::units {

// input [..., in] times weight [out, in], plus bias [out] where that is defined: [..., out], with
// gradients. Empty: at::linear.
using LinearProduct = std::function<at::Tensor(const at::Tensor& input, const at::Tensor& weight,
                                               const at::Tensor& bias)>;

}  // namespace scaletrain::units
