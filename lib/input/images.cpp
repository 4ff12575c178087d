#include "lib/input/images.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace scaletrain::input {
namespace {

constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kPixelsPerTask =
    16384;  // below that a second thread costs more than it saves

// A copy made on the stream `copies`: it passes the computation that is queued, and the host waits
// for it alone, so the host's memory may be reused at once.
at::Tensor copy_to_device(const at::Tensor& host, c10::Stream copies) {
  const at::Device device = copies.device();
  const c10::Stream compute = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const c10::StreamGuard guard(copies);
  at::Tensor copy = host.to(device);
  copy.record_stream(compute);
  return copy;
}

}  // namespace

ImageInput::ImageInput(const recipe::Normalize& normalize, std::int64_t image_size,
                       at::Device device)
    : image_size_(image_size), device_(device), tables_() {
  std::array<float, kChannels> scale{}, shift{};
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    const double mean = normalize.mean[channel], std = normalize.std[channel];
    for (int value = 0; value < 256; ++value) {
      tables_[channel][static_cast<std::size_t>(value)] =
          static_cast<float>((value / 255.0 - mean) / std);
    }
    scale[channel] = static_cast<float>(1 / (255.0 * std));
    shift[channel] = static_cast<float>(-mean / std);
  }
  if (device_.is_cpu()) return;
  copies_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
  scale_ = at::tensor(at::ArrayRef<float>(scale)).to(device_);
  shift_ = at::tensor(at::ArrayRef<float>(shift)).to(device_);
}

DeviceBatch ImageInput::prepare(const data::ImageBatch& batch) const {
  const at::Tensor labels = at::from_blob(batch.labels.data(), {batch.count}, at::kLong);
  if (device_.is_cpu()) return {.images = normalize_on_cpu(batch), .targets = labels.clone()};
  const at::Tensor bytes = at::from_blob(
      batch.pixels.data(), {batch.count, image_size_, image_size_, kChannels}, at::kByte);
  return {.images = normalize_on_device(copy_to_device(bytes, *copies_)),
          .targets = copy_to_device(labels, *copies_)};
}

// A table look-up a value: no rounding that depends on the machine's vector width.
at::Tensor ImageInput::normalize_on_cpu(const data::ImageBatch& batch) const {
  const at::Tensor images =
      at::empty({batch.count, image_size_, image_size_, kChannels}, at::kFloat);
  const std::uint8_t* const in = batch.pixels.data();
  auto* const out = images.mutable_data_ptr<float>();
  const std::int64_t pixels = batch.count * image_size_ * image_size_;
  at::parallel_for(0, pixels, kPixelsPerTask, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * kChannels; i < end * kChannels; i += kChannels) {
      out[i] = tables_[0][in[i]];
      out[i + 1] = tables_[1][in[i + 1]];
      out[i + 2] = tables_[2][in[i + 2]];
    }
  });
  return images.permute({0, 3, 1, 2});
}

at::Tensor ImageInput::normalize_on_device(const at::Tensor& bytes) const {
  return bytes.mul(scale_).add_(shift_).permute({0, 3, 1, 2});
}

}  // namespace scaletrain::input
