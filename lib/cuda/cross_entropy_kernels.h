// CUDA kernels of softmax cross-entropy, one pass each for forward and backward: log-probabilities
// are never written. LibTorch converts 16-bit logits to fp32 and writes three such tensors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// In device memory: logits [rows, classes], rows `stride` elements apart; targets [rows].
struct CrossEntropyRows {
  const void* logits = nullptr;
  ValueType type = ValueType::kFloat;
  std::int64_t rows = 0, classes = 0, stride = 0;
  const std::int64_t* targets = nullptr;
};

constexpr std::int64_t kIgnoredTarget = -100;  // no loss and no gradient, as in PyTorch

// For each row: losses = log(sum(exp(logits))) - logits[target]; log_sums receives the first term.
// A target out of range fails an assertion in the kernel, as in PyTorch.
void cross_entropy(const CrossEntropyRows& on, float* losses, float* log_sums, cudaStream_t stream);

// gradients = (exp(logits - log_sum) - [class == target]) * factor, in the layout of `on.logits`;
// zero between a row's last class and the next row. `factor` is in device memory.
void cross_entropy_backward(const CrossEntropyRows& on, const float* log_sums, const float* factor,
                            void* gradients, cudaStream_t stream);

}  // namespace scaletrain::cuda
