// Linear layers whose number of outputs is badly aligned for a GPU's matrix units.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if a 16-bit product of `input` [..., in] and `weight` [out, in] gains: on a CUDA device
// cuBLAS reads 16 bytes at a time if rows begin at such addresses, and GPT-2's 50,257 tokens break
// that alignment (NVIDIA, Matrix Multiplication Background User's Guide).
bool aligned_dense_takes(const at::Tensor& input, const at::Tensor& weight);

// Computes at::linear with weights padded by zero rows to a multiple of 64; the result [..., out]
// is a view of a wider tensor. bias: [out] or undefined. Uses autocast's dtype.
at::Tensor aligned_dense(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace scaletrain::nn
