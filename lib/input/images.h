// From decoded bytes to what a model eats: on the device, float, normalised, channels last.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "lib/core/buffer.h"
#include "lib/data/loader.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::input {

struct DeviceBatch {
  at::Tensor images;   // [count, 3, size, size] float, (value / 255 - mean) / std, channels last
  at::Tensor targets;  // [count] int64
};

class ImageInput {
 public:
  ImageInput(const recipe::Normalize& normalize, std::int64_t image_size, at::Device device);
  DeviceBatch prepare(const data::ImageBatch& batch) const;

 private:
  std::int64_t image_size_;
  at::Device device_;
  at::Tensor scale_, shift_;
};

}  // namespace scaletrain::input
