// Normalizes images: (value / 255 - mean) / std of bytes [count, size, size, 3], as [count,
// channels, size, size] in channels-last layout; one class for the CPU, one for other devices. The
// result is fp32, or fp64 with fp64 factors for a model in fp64.
//
// With one channel the value is the pixel's luma (lib/data/image/luma.h), with the mean and std of
// recipe::for_channels().
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "lib/recipe/sections/data/data.h"

namespace scaletrain::input {

inline constexpr std::int64_t kChannels = 3;

// Uses a table look-up for each value: its rounding does not depend on the CPU's vector width.
class TableNormalizer {
 public:
  // `channels`: 1 or 3; `type`: dtype of the result, fp32 or fp64.
  TableNormalizer(const recipe::Normalize& normalize, std::int64_t channels,
                  at::ScalarType type = at::kFloat);
  at::Tensor operator()(const at::Tensor& bytes) const;  // contiguous, on the CPU

  // Result for each byte value, by channel.
  template <class T>
  using Tables = std::array<std::array<T, 256>, kChannels>;

 private:
  std::int64_t channels_;
  at::ScalarType type_;
  Tables<float> tables_;
  Tables<double> wide_tables_;
};

// Uses LibTorch kernels on the bytes' device.
class KernelNormalizer {
 public:
  KernelNormalizer(const recipe::Normalize& normalize, std::int64_t channels, at::Device device,
                   at::ScalarType type = at::kFloat);
  at::Tensor operator()(const at::Tensor& bytes) const;  // result is on that device

 private:
  at::Tensor scale_, shift_;
  at::Tensor luma_;  // luma weights of red, green and blue; undefined for three channels
};

}  // namespace scaletrain::input
