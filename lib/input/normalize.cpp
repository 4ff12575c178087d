#include "lib/input/normalize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/ScalarType.h>

#include <vector>

#include "lib/data/image/luma.h"
#include "lib/units/parallel.h"

namespace scaletrain::input {
namespace {

constexpr std::int64_t kPixelsPerTask =
    16384;  // below that a second thread costs more than it saves

template <class T>
at::Tensor look_up_grey(const TableNormalizer::Tables<T>& tables, const at::Tensor& bytes) {
  const at::Tensor images = at::empty({bytes.size(0), bytes.size(1), bytes.size(2), 1},
                                      c10::CppTypeToScalarType<T>::value);
  const auto* const in = bytes.const_data_ptr<std::uint8_t>();
  auto* const out = images.mutable_data_ptr<T>();
  units::parallel_for(0, images.numel(), kPixelsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = tables[0][data::luma(in + i * kChannels)];
  });
  return images.permute({0, 3, 1, 2});
}

template <class T>
at::Tensor look_up_colours(const TableNormalizer::Tables<T>& tables, const at::Tensor& bytes) {
  const at::Tensor images = at::empty(bytes.sizes(), c10::CppTypeToScalarType<T>::value);
  const auto* const in = bytes.const_data_ptr<std::uint8_t>();
  auto* const out = images.mutable_data_ptr<T>();
  units::parallel_for(
      0, bytes.numel() / kChannels, kPixelsPerTask, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * kChannels; i < end * kChannels; i += kChannels) {
          out[i] = tables[0][in[i]];
          out[i + 1] = tables[1][in[i + 1]];
          out[i + 2] = tables[2][in[i + 2]];
        }
      });
  return images.permute({0, 3, 1, 2});
}

template <class T>
at::Tensor look_up(const TableNormalizer::Tables<T>& tables, const at::Tensor& bytes,
                   std::int64_t channels) {
  return channels == 1 ? look_up_grey(tables, bytes) : look_up_colours(tables, bytes);
}

}  // namespace

TableNormalizer::TableNormalizer(const recipe::Normalize& normalize, std::int64_t channels,
                                 at::ScalarType type)
    : channels_(channels), type_(type), tables_(), wide_tables_() {
  const recipe::Normalize values = recipe::for_channels(normalize, channels);
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const double mean = values.mean[channel], std = values.std[channel];
    for (int value = 0; value < 256; ++value) {
      const double normalized = (value / 255.0 - mean) / std;
      tables_[channel][static_cast<std::size_t>(value)] = static_cast<float>(normalized);
      wide_tables_[channel][static_cast<std::size_t>(value)] = normalized;
    }
  }
}

at::Tensor TableNormalizer::operator()(const at::Tensor& bytes) const {
  return type_ == at::kDouble ? look_up(wide_tables_, bytes, channels_)
                              : look_up(tables_, bytes, channels_);
}

KernelNormalizer::KernelNormalizer(const recipe::Normalize& normalize, std::int64_t channels,
                                   at::Device device, at::ScalarType type) {
  const recipe::Normalize values = recipe::for_channels(normalize, channels);
  std::vector<double> scale, shift;
  scale.reserve(kChannels);
  shift.reserve(kChannels);
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel) {
    const double mean = values.mean[channel], std = values.std[channel];
    scale.push_back(1 / (255.0 * std));
    shift.push_back(-mean / std);
  }
  scale_ = at::tensor(scale).to(device, type);
  shift_ = at::tensor(shift).to(device, type);
  if (channels == 1) luma_ = at::tensor(at::ArrayRef<int>(data::kLumaWeights)).to(device);
}

at::Tensor KernelNormalizer::operator()(const at::Tensor& bytes) const {
  if (!luma_.defined()) return bytes.mul(scale_).add_(shift_).permute({0, 3, 1, 2});
  const at::Tensor weighted = bytes.to(at::kInt).mul_(luma_).sum(3, /*keepdim=*/true, at::kInt);
  const at::Tensor grey = weighted.add_(data::kLumaHalf).bitwise_right_shift_(data::kLumaBits);
  return grey.mul(scale_).add_(shift_).permute({0, 3, 1, 2});
}

}  // namespace scaletrain::input
