// (value / 255 - mean) / std of the bytes of images [count, size, size, 3], as [count, 3, size,
// size] floats in channels-last layout: once for a CPU, once for a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "lib/recipe/recipe.h"

namespace scaletrain::input {

inline constexpr std::int64_t kChannels = 3;

// A table look-up a value: no rounding that depends on the machine's vector width.
class TableNormalizer {
 public:
  explicit TableNormalizer(const recipe::Normalize& normalize);
  at::Tensor operator()(const at::Tensor& bytes) const;  // contiguous, on the CPU

 private:
  std::array<std::array<float, 256>, kChannels> tables_;  // of each channel: the value of each byte
};

// Kernels of whatever device the bytes are on, each a step of all values.
class KernelNormalizer {
 public:
  KernelNormalizer(const recipe::Normalize& normalize, at::Device device);
  at::Tensor operator()(const at::Tensor& bytes) const;  // on that device

 private:
  at::Tensor scale_, shift_;
};

}  // namespace scaletrain::input
