// Fused layer normalization on a GPU: reads its rows once forward and once for all gradients
// (lib/cuda/layer_norm_kernels.h). Normalizes a tensor, or the sum of a residual stream and a
// branch, with a separate output dtype, for example an fp32 stream and bf16 products.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

struct SumAndNorm {
  at::Tensor sum, output;
};

struct LayerNormParameters {
  const at::Tensor &weight, &bias;  // [channels], floating point
  double eps = 0;
};

// True if there are kernels for input [..., channels], a branch alike (undefined: none) and this
// output dtype: on a CUDA device, in fp32, fp16 or bf16; branch and output have the input's dtype,
// or one 16-bit dtype beside fp32; the output of a 16-bit input may be fp32.
bool fused_layer_norm_takes(const at::Tensor& input, const at::Tensor& branch,
                            const at::Tensor& weight, at::ScalarType output);

at::Tensor fused_layer_norm(const at::Tensor& input, const LayerNormParameters& parameters,
                            at::ScalarType output);

// Returns the sum, rounded to the input's dtype, and its norm. Without a branch the sum is the
// input: backward adds the gradients of both in the same pass.
SumAndNorm fused_sum_layer_norm(const at::Tensor& input, const at::Tensor& branch,
                                const LayerNormParameters& parameters, at::ScalarType output);

}  // namespace scaletrain::nn
