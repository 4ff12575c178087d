// (value / 255 - mean) / std of the bytes of images [count, size, size, 3], as [count, channels,
// size, size] in channels-last layout: once for a CPU, once for a device. The result is fp32, or
// fp64 with factors of fp64 for a model in fp64.
//
// Of one channel the value is the pixel's luma (lib/data/image/luma.h), by the mean and std of
// recipe::for_channels().
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "lib/recipe/sections/data.h"

namespace scaletrain::input {

inline constexpr std::int64_t kChannels = 3;

// A table look-up a value: no rounding that depends on the machine's vector width.
class TableNormalizer {
 public:
  // `channels`: 1 or 3; `type`: of the images, fp32 or fp64.
  TableNormalizer(const recipe::Normalize& normalize, std::int64_t channels,
                  at::ScalarType type = at::kFloat);
  at::Tensor operator()(const at::Tensor& bytes) const;  // contiguous, on the CPU

  // The value of each byte, for each channel.
  template <class T>
  using Tables = std::array<std::array<T, 256>, kChannels>;

 private:
  std::int64_t channels_;
  at::ScalarType type_;
  Tables<float> tables_;
  Tables<double> wide_tables_;
};

// Kernels of whatever device the bytes are on, each a step of all values.
class KernelNormalizer {
 public:
  KernelNormalizer(const recipe::Normalize& normalize, std::int64_t channels, at::Device device,
                   at::ScalarType type = at::kFloat);
  at::Tensor operator()(const at::Tensor& bytes) const;  // on that device

 private:
  at::Tensor scale_, shift_;
  at::Tensor luma_;  // of red, green and blue; undefined for three channels
};

}  // namespace scaletrain::input
