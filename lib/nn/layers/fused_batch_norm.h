// Fused batch normalization in training, with residual and ReLU, with few passes over GPU memory
// (lib/cuda/batch_norm_kernels.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace scaletrain::nn {

struct FusedBatchNorm {
  at::Tensor residual = {};  // added to the output, if defined
  bool relu = false;         // applied last
  double eps = 1e-5, momentum = 0.1;
  at::Tensor running_mean = {}, running_variance = {};  // updated, if defined
};

// True if there are kernels for `input` [batch, channels, height, width], a residual of the same
// shape and fp32 parameters: on a CUDA device, in fp32, fp16 or bf16, channels last, with several
// values per channel.
bool fused_batch_norm_takes(const at::Tensor& input, const at::Tensor& residual,
                            const at::Tensor& weight, const at::Tensor& bias);

// Not differentiable twice. Deterministic: bitwise equal each time.
at::Tensor fused_batch_norm(const at::Tensor& input, const at::Tensor& weight,
                            const at::Tensor& bias, const FusedBatchNorm& options);

}  // namespace scaletrain::nn
