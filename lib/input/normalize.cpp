#include "lib/input/normalize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <vector>

#include "lib/data/image/luma.h"
#include "lib/units/parallel.h"

namespace scaletrain::input {
namespace {

constexpr std::int64_t kPixelsPerTask =
    16384;  // below that a second thread costs more than it saves

}  // namespace

TableNormalizer::TableNormalizer(const recipe::Normalize& normalize, std::int64_t channels)
    : channels_(channels), tables_() {
  const recipe::Normalize values = recipe::for_channels(normalize, channels);
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const double mean = values.mean[channel], std = values.std[channel];
    for (int value = 0; value < 256; ++value) {
      tables_[channel][static_cast<std::size_t>(value)] =
          static_cast<float>((value / 255.0 - mean) / std);
    }
  }
}

at::Tensor TableNormalizer::grey(const at::Tensor& bytes) const {
  const at::Tensor images = at::empty({bytes.size(0), bytes.size(1), bytes.size(2), 1}, at::kFloat);
  const auto* const in = bytes.const_data_ptr<std::uint8_t>();
  auto* const out = images.mutable_data_ptr<float>();
  units::parallel_for(0, images.numel(), kPixelsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = tables_[0][data::luma(in + i * kChannels)];
  });
  return images.permute({0, 3, 1, 2});
}

at::Tensor TableNormalizer::operator()(const at::Tensor& bytes) const {
  if (channels_ == 1) return grey(bytes);
  const at::Tensor images = at::empty(bytes.sizes(), at::kFloat);
  const auto* const in = bytes.const_data_ptr<std::uint8_t>();
  auto* const out = images.mutable_data_ptr<float>();
  units::parallel_for(
      0, bytes.numel() / kChannels, kPixelsPerTask, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin * kChannels; i < end * kChannels; i += kChannels) {
          out[i] = tables_[0][in[i]];
          out[i + 1] = tables_[1][in[i + 1]];
          out[i + 2] = tables_[2][in[i + 2]];
        }
      });
  return images.permute({0, 3, 1, 2});
}

KernelNormalizer::KernelNormalizer(const recipe::Normalize& normalize, std::int64_t channels,
                                   at::Device device) {
  const recipe::Normalize values = recipe::for_channels(normalize, channels);
  std::vector<float> scale, shift;
  scale.reserve(kChannels);
  shift.reserve(kChannels);
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel) {
    const double mean = values.mean[channel], std = values.std[channel];
    scale.push_back(static_cast<float>(1 / (255.0 * std)));
    shift.push_back(static_cast<float>(-mean / std));
  }
  scale_ = at::tensor(scale).to(device);
  shift_ = at::tensor(shift).to(device);
  if (channels == 1) luma_ = at::tensor(at::ArrayRef<int>(data::kLumaWeights)).to(device);
}

at::Tensor KernelNormalizer::operator()(const at::Tensor& bytes) const {
  if (!luma_.defined()) return bytes.mul(scale_).add_(shift_).permute({0, 3, 1, 2});
  const at::Tensor weighted = bytes.to(at::kInt).mul_(luma_).sum(3, /*keepdim=*/true, at::kInt);
  const at::Tensor grey = weighted.add_(data::kLumaHalf).bitwise_right_shift_(data::kLumaBits);
  return grey.mul(scale_).add_(shift_).permute({0, 3, 1, 2});
}

}  // namespace scaletrain::input
