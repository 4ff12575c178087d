#include "lib/input/normalize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "lib/units/parallel.h"

namespace scaletrain::input {
namespace {

constexpr std::int64_t kPixelsPerTask =
    16384;  // below that a second thread costs more than it saves

}  // namespace

TableNormalizer::TableNormalizer(const recipe::Normalize& normalize) : tables_() {
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const double mean = normalize.mean[channel], std = normalize.std[channel];
    for (int value = 0; value < 256; ++value) {
      tables_[channel][static_cast<std::size_t>(value)] =
          static_cast<float>((value / 255.0 - mean) / std);
    }
  }
}

at::Tensor TableNormalizer::operator()(const at::Tensor& bytes) const {
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

KernelNormalizer::KernelNormalizer(const recipe::Normalize& normalize, at::Device device) {
  std::array<float, kChannels> scale{}, shift{};
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const double mean = normalize.mean[channel], std = normalize.std[channel];
    scale[channel] = static_cast<float>(1 / (255.0 * std));
    shift[channel] = static_cast<float>(-mean / std);
  }
  scale_ = at::tensor(at::ArrayRef<float>(scale)).to(device);
  shift_ = at::tensor(at::ArrayRef<float>(shift)).to(device);
}

at::Tensor KernelNormalizer::operator()(const at::Tensor& bytes) const {
  return bytes.mul(scale_).add_(shift_).permute({0, 3, 1, 2});
}

}  // namespace scaletrain::input
