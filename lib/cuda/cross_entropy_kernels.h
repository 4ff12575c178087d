// Softmax cross-entropy of rows of logits in one pass each way, as kernels: the log-probabilities
// are never written. LibTorch's way in 16 bits widens the logits and writes three such tensors.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// Device memory: logits [rows, classes], a row `stride` elements behind the other; targets [rows].
struct CrossEntropyRows {
  const void* logits = nullptr;
  ValueType type = ValueType::kFloat;
  std::int64_t rows = 0, classes = 0, stride = 0;
  const std::int64_t* targets = nullptr;
};

constexpr std::int64_t kIgnoredTarget = -100;  // its row has no loss and no gradient, as in PyTorch

// Of each row: losses = log(sum(exp(logits))) - logits[target], and that logarithm. A target that
// is no class stops the kernel by an assertion, as PyTorch's does.
void cross_entropy(const CrossEntropyRows& on, float* losses, float* log_sums, cudaStream_t stream);

// gradients = (exp(logits - log_sum) - [class == target]) * factor, as `on.logits` lie; zero
// between a row's last class and the next row. `factor` lies on the device.
void cross_entropy_backward(const CrossEntropyRows& on, const float* log_sums, const float* factor,
                            void* gradients, cudaStream_t stream);

}  // namespace scaletrain::cuda
