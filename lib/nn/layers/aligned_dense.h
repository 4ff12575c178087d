// Products of so many outputs that a GPU's matrix units could not read a row of them at once.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if a 16-bit product of `input` [..., in] and `weight` [out, in] gains: on a CUDA device
// cuBLAS reads 16 bytes at a time if rows begin at such addresses, and GPT-2's 50,257 tokens break
// that alignment (NVIDIA, Matrix Multiplication Background User's Guide).
bool aligned_dense_takes(const at::Tensor& input, const at::Tensor& weight);

// at::linear of weights that are widened by rows of zeros to a multiple of 64; the result
// [..., out] is a part of a wider tensor. bias [out] or undefined. In the type that autocast asks
// for.
at::Tensor aligned_dense(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace scaletrain::nn
