// Batch normalisation in training of channels-last maps, with the ReLU and the residual that may
// follow it, as kernels: a map is read twice forward and twice backward, and nothing of its size is
// written but the output and the gradients.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "lib/cuda/value_type.h"

namespace scaletrain::cuda {

// Device memory: values [rows, channels] of a map, where a row is a pixel of a sample.
struct BatchNormMap {
  const void* values = nullptr;
  ValueType type = ValueType::kFloat;
  std::int64_t rows = 0, channels = 0;
  int multiprocessors = 1;  // of the device
};

// All of them [channels], as the statistics of this batch and the parameters.
struct BatchNormChannels {
  const float *mean = nullptr, *inverse_deviation = nullptr, *weight = nullptr, *bias = nullptr;
};

// What the batch moves: by `momentum` towards its mean and its unbiased variance.
struct BatchNormRunning {
  float *mean = nullptr, *variance = nullptr;  // null: nothing is moved
  float momentum = 0;
};

// output = (values - mean) * inverse_deviation * weight + bias + residual, or of that the ReLU.
struct BatchNormOutput {
  const void* residual = nullptr;  // as the map, or null
  bool relu = false;
  void* output = nullptr;
};

struct BatchNormGradients {
  // What comes in, as the map; of the ReLU whose input had a residual, its output, else null.
  const void *of_output = nullptr, *output = nullptr;
  bool relu = false;
  // What goes out: the residual's, written where `output` is given; the map's, unless null.
  void *of_residual = nullptr, *of_values = nullptr;
  float *of_weight = nullptr, *of_bias = nullptr;
};

// Numbers of fp32 that `workspace` has room for below.
std::int64_t batch_norm_workspace(const BatchNormMap& map);

// Sums run in the same order each time.
void batch_norm_statistics(const BatchNormMap& map, float eps, const BatchNormRunning& running,
                           float* workspace, float* mean, float* inverse_deviation,
                           cudaStream_t stream);
void batch_norm_output(const BatchNormMap& map, const BatchNormChannels& channels,
                       const BatchNormOutput& to, cudaStream_t stream);
void batch_norm_backward(const BatchNormMap& map, const BatchNormChannels& channels,
                         const BatchNormGradients& gradients, float* workspace,
                         cudaStream_t stream);

}  // namespace scaletrain::cuda
