// CUDA kernels of training-mode batch normalization for channels-last maps, fused with the ReLU and
// residual addition that may follow: a map is read twice forward and twice backward, and only the
// output and the gradients are written in its size.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// A map in device memory: values [rows, channels]; a row is one pixel of one sample.
struct BatchNormMap {
  const void* values = nullptr;
  ValueType type = ValueType::kFloat;
  std::int64_t rows = 0, channels = 0;
  int multiprocessors = 1;  // multiprocessors of the device
};

// Batch statistics and parameters, each [channels].
struct BatchNormChannels {
  const float *mean = nullptr, *inverse_deviation = nullptr, *weight = nullptr, *bias = nullptr;
};

// Running statistics, moved by `momentum` towards the batch's mean and unbiased variance.
struct BatchNormRunning {
  float *mean = nullptr, *variance = nullptr;  // null: not updated
  float momentum = 0;
};

// output = (values - mean) * inverse_deviation * weight + bias + residual, then perhaps ReLU.
struct BatchNormOutput {
  const void* residual = nullptr;  // like the map, or null
  bool relu = false;
  void* output = nullptr;
};

struct BatchNormGradients {
  // Inputs: gradient of the output; with ReLU and residual also forward's output, else null.
  const void *of_output = nullptr, *output = nullptr;
  bool relu = false;
  // Results: the residual's gradient, written if `output` is given; the map's, unless null.
  void *of_residual = nullptr, *of_values = nullptr;
  float *of_weight = nullptr, *of_bias = nullptr;
};

// Number of floats that `workspace` below must hold.
std::int64_t batch_norm_workspace(const BatchNormMap& map);

// Sums run in a fixed order, so results are deterministic.
void batch_norm_statistics(const BatchNormMap& map, float eps, const BatchNormRunning& running,
                           float* workspace, float* mean, float* inverse_deviation,
                           cudaStream_t stream);
void batch_norm_output(const BatchNormMap& map, const BatchNormChannels& channels,
                       const BatchNormOutput& to, cudaStream_t stream);
void batch_norm_backward(const BatchNormMap& map, const BatchNormChannels& channels,
                         const BatchNormGradients& gradients, float* workspace,
                         cudaStream_t stream);

}  // namespace scaletrain::cuda
