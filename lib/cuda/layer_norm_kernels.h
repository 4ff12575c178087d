// Layer normalisation as kernels: a row is read once each way, also where the sum of a residual
// stream and a branch is what is normalised, and backward gives the gradients of weight and bias in
// the same pass. LibTorch's way under autocast casts before and after, adds on its own, and reads
// the rows again for the parameters.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// Device memory, all of it contiguous: rows [rows, channels], parameters [channels].
struct LayerNormRows {
  // Of the input, of the sum and of their gradients; of the branch; of the output.
  ValueType type = ValueType::kFloat, branch = ValueType::kFloat, output = ValueType::kFloat;
  std::int64_t rows = 0, channels = 0;
  const float* weight = nullptr;

  // Whether there are kernels for these types: branch and output have the input's type, or one
  // 16-bit type beside an input in fp32; an output of a 16-bit input may be fp32 too.
  bool takes_types() const;
};

struct LayerNormForward {
  const void *input = nullptr, *branch = nullptr;  // no branch: null
  const float* bias = nullptr;
  float eps = 0;
  void *sum = nullptr, *output = nullptr;     // sum: input + branch, null without a branch
  float *means = nullptr, *scales = nullptr;  // [rows]: 1 / sqrt(variance + eps)
};

void layer_norm(const LayerNormRows& on, const LayerNormForward& forward, cudaStream_t stream);

struct LayerNormBackward {
  const void *of_output = nullptr,
             *of_sum = nullptr;                     // gradients; of_sum: null where there is none
  const void* input = nullptr;                      // or the sum
  const float *means = nullptr, *scales = nullptr;  // forward's
  void *of_input = nullptr, *of_branch = nullptr;   // of_branch: null where nobody wants it
  // The parameters' gradients, [channels] each, and the blocks' sums, [2, blocks, channels]; null
  // where nobody wants them.
  float *of_weight = nullptr, *of_bias = nullptr, *partial_sums = nullptr;
  std::int64_t blocks = 0;  // layer_norm_blocks()
};

// How many blocks backward runs with: a matter of the shape and the device's processors alone, as
// the order of the parameters' sums is.
std::int64_t layer_norm_blocks(const LayerNormRows& on, int processors);

void layer_norm_backward(const LayerNormRows& on, const LayerNormBackward& backward,
                         cudaStream_t stream);

}  // namespace scaletrain::cuda
