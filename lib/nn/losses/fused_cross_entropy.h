// Fused softmax cross-entropy on a GPU: reads the logits once forward and once for their gradients
// (lib/cuda/cross_entropy_kernels.h), and writes nothing else of that size.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if there are kernels for logits [rows, classes] and targets [rows]: on a CUDA device, in
// fp32, fp16 or bf16, with class numbers as targets.
bool fused_cross_entropy_takes(const at::Tensor& logits, const at::Tensor& targets);

// Returns the sum over the rows, 0-dim fp32; rows with target -100 add nothing.
at::Tensor fused_cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace scaletrain::nn
