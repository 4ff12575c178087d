// Softmax cross-entropy that a GPU reads its logits once for, and once more for their gradients
// (lib/cuda/cross_entropy_kernels.h): nothing of their size is written but these.
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

// True if there are kernels for logits [rows, classes] and targets [rows]: on a CUDA device, in
// fp32, fp16 or bf16, with class numbers as targets.
bool fused_cross_entropy_takes(const at::Tensor& logits, const at::Tensor& targets);

// The sum over the rows, 0-dim fp32; a target of -100 adds nothing.
at::Tensor fused_cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

}  // namespace scaletrain::nn
