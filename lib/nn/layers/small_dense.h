// Matrix products of small linear layers, where the overhead of a call dominates.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if small_dense() supports these: contiguous fp32 on a CPU. at::linear supports all.
bool small_dense_takes(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

// input [..., in], weight [out, in], bias [out] or undefined -> [..., out], with `relu` 0 where
// that is below 0. The bits of at::linear and at::relu, forward and backward, by the same calls of
// the BLAS that LibTorch brings; but one node of autograd's graph, and no view. No second
// derivative.
at::Tensor small_dense(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                       bool relu);

}  // namespace scaletrain::nn
