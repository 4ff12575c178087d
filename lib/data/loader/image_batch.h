// Columns of a batch of images.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/data/image/image.h"
#include "lib/data/loader/batch.h"

namespace scaletrain::data {

// Columns of the batch, for Columns::values().
enum ImageColumn : std::size_t {
  kPixels,  // uint8 [size, size, 3] row-major RGB, 0..255
  // int64 [1], 0..num_classes-1; multi-label: uint8 [num_classes], 1 for the classes of the sample
  // and 0 for the others
  kLabels
};

inline std::span<std::uint8_t> pixels_of(const Batch& batch) {
  return batch.columns.values<std::uint8_t>(kPixels);
}
// Returns the height and width of the batch's images.
inline std::int64_t image_size_of(const Batch& batch) {
  const std::int64_t pixels = batch.columns.layout()[kPixels].size / kChannels;
  return std::llround(std::sqrt(static_cast<double>(pixels)));
}
inline std::span<std::int64_t> labels_of(const Batch& batch) {
  return batch.columns.values<std::int64_t>(kLabels);
}
inline std::span<std::uint8_t> class_flags_of(const Batch& batch) {
  return batch.columns.values<std::uint8_t>(kLabels);
}

}  // namespace scaletrain::data
