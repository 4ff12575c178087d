// From decoded bytes to what a model eats: on the device, float, normalised, channels last.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <array>
#include <memory>
#include <optional>

#include "lib/core/buffer.h"
#include "lib/data/loader.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::input {

struct DeviceBatch {
  at::Tensor images;   // [count, 3, size, size] float, (value / 255 - mean) / std, channels last
  at::Tensor targets;  // [count] int64; mixed: [count, classes] float shares
};

class ImageInput {
 public:
  ImageInput(const recipe::Normalize& normalize, std::int64_t image_size, at::Device device);

  // The batch's bytes are not needed any more when it returns.
  DeviceBatch prepare(const data::ImageBatch& batch) const;

 private:
  using ChannelTable = std::array<float, 256>;  // the normalised value of each byte

  at::Tensor normalize_on_cpu(const data::ImageBatch& batch) const;
  at::Tensor normalize_on_device(const at::Tensor& bytes) const;

  std::int64_t image_size_;
  at::Device device_;
  std::array<ChannelTable, 3> tables_;  // used on a CPU
  at::Tensor scale_, shift_;            // used on a device
  // One for all copies: LibTorch keeps the memory of freed tensors for the stream they came from.
  std::optional<c10::Stream> copies_;  // used on a device
};

}  // namespace scaletrain::input
