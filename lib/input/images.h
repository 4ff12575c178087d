// Turns decoded images into model input: on the device, floating point, normalized, channels last.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "lib/data/loader/batch.h"
#include "lib/input/normalize.h"
#include "lib/input/transfer.h"
#include "lib/recipe/sections/data/data.h"
#include "lib/recipe/sections/precision.h"

namespace scaletrain::input {

struct ImageTensors {
  // [count, channels, size, size], channels last, fp32 or fp64: (value / 255 - mean) / std
  at::Tensor images;
  // Class numbers, [count] int64; with mixup or cutmix, or if samples have any number of classes,
  // class shares, [count, classes] float.
  at::Tensor targets;
};

// Dtype of image input for a model in this precision: fp64 or fp32; narrower precisions convert
// fp32 themselves.
at::ScalarType image_type(const recipe::Precision& precision);

class ImageInput {
 public:
  // `channels`: 3 or 1 (lib/input/normalize.h); `type`: dtype from image_type().
  ImageInput(const recipe::Normalize& normalize, std::int64_t channels, at::Device device,
             at::ScalarType type = at::kFloat);

  // The batch may be destroyed after the call. Waits for the device only if it is not pinned.
  ImageTensors prepare(const data::Batch& batch) const;

 private:
  at::Device device_;
  TableNormalizer normalize_on_cpu_;
  std::optional<KernelNormalizer> normalize_on_device_;
  Transfer transfer_;
};

}  // namespace scaletrain::input
