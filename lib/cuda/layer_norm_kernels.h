// CUDA kernels of layer normalization, optionally of the sum of a residual stream and a branch: a
// row is read once forward and once backward, and backward computes the gradients of weight and
// bias in the same pass. LibTorch under autocast casts before and after, adds in a kernel of its
// own, and reads the rows again for the parameters.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// In device memory, contiguous: rows [rows, channels], parameters [channels].
struct LayerNormRows {
  // type: input, sum and their gradients. branch: the branch. output: the output.
  ValueType type = ValueType::kFloat, branch = ValueType::kFloat, output = ValueType::kFloat;
  std::int64_t rows = 0, channels = 0;
  const float* weight = nullptr;

  // True if there are kernels for these types: branch and output have the input's type, or one
  // 16-bit type with an fp32 input; the output of a 16-bit input may also be fp32.
  bool takes_types() const;
};

struct LayerNormForward {
  const void *input = nullptr, *branch = nullptr;  // no branch: null
  const float* bias = nullptr;
  float eps = 0;
  void *sum = nullptr, *output = nullptr;     // sum: input + branch; null without a branch
  float *means = nullptr, *scales = nullptr;  // [rows]; scale: 1 / sqrt(variance + eps)
};

void layer_norm(const LayerNormRows& on, const LayerNormForward& forward, cudaStream_t stream);

struct LayerNormBackward {
  const void *of_output = nullptr,
             *of_sum = nullptr;                     // gradients; of_sum: null if there is none
  const void* input = nullptr;                      // with a branch: forward's sum
  const float *means = nullptr, *scales = nullptr;  // as computed in forward
  void *of_input = nullptr, *of_branch = nullptr;   // of_branch: null if not needed
  // Gradients of the parameters, [channels] each, and the sums of each block, [2, blocks,
  // channels]; all null if not needed.
  float *of_weight = nullptr, *of_bias = nullptr, *partial_sums = nullptr;
  std::int64_t blocks = 0;  // layer_norm_blocks()
};

// Number of blocks of backward. It depends only on the shape and the device's multiprocessors, and
// so does the order in which the parameters' gradients are summed.
std::int64_t layer_norm_blocks(const LayerNormRows& on, int processors);

void layer_norm_backward(const LayerNormRows& on, const LayerNormBackward& backward,
                         cudaStream_t stream);

}  // namespace scaletrain::cuda
