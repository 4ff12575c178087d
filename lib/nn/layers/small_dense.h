// Matrix products of small linear layers, where the overhead of a call dominates.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if small_dense() supports these: contiguous fp32 on a CPU. at::linear supports all.
bool small_dense_takes(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

// input [..., in], weight [out, in], bias [out] or undefined -> [..., out]; with `relu`, negative
// outputs become 0. Forward and backward have the bits of at::linear and at::relu, since they call
// the same BLAS functions, but add only one node to autograd's graph and no view. No second
// derivative.
at::Tensor small_dense(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                       bool relu);

}  // namespace scaletrain::nn
