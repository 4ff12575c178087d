// From decoded bytes to what a model eats: on the device, floating point, normalised, channels
// last.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lib/data/loader/batch.h"
#include "lib/input/normalize.h"
#include "lib/input/transfer.h"
#include "lib/recipe/sections/data.h"
#include "lib/recipe/sections/precision.h"

namespace scaletrain::input {

struct ImageTensors {
  // [count, channels, size, size] of the input's type, (value / 255 - mean) / std, channels last
  at::Tensor images;
  // [count] int64; mixed, or where samples have any number of classes, [count, classes] float
  // shares
  at::Tensor targets;
};

// The type of the images that a model in this precision takes: fp64, or fp32, of which what is
// narrower makes its own.
at::ScalarType image_type(const recipe::Precision& precision);

class ImageInput {
 public:
  // `channels`: of the model's images, 3 or 1 (lib/input/normalize.h); `type`: image_type().
  ImageInput(const recipe::Normalize& normalize, std::int64_t channels, at::Device device,
             at::ScalarType type = at::kFloat);

  // Queues work only. The batch may be destroyed when it returns (lib/input/transfer.h).
  ImageTensors prepare(const data::Batch& batch) const;

 private:
  at::Device device_;
  TableNormalizer normalize_on_cpu_;
  std::optional<KernelNormalizer> normalize_on_device_;
  Transfer transfer_;
};

}  // namespace scaletrain::input
