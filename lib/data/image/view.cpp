#include "lib/data/image/view.h"

#include <algorithm>

namespace scaletrain::data {
namespace {

// Returns half of `excess`; halves are rounded to even, as Python's round() does in CenterCrop.
std::int64_t centre(std::int64_t excess) {
  const std::int64_t half = excess / 2;
  return excess % 2 != 0 && half % 2 != 0 ? half + 1 : half;
}

}  // namespace

View stretched(std::int64_t width, std::int64_t height, std::int64_t new_width,
               std::int64_t new_height, Filter filter) {
  return {
      {{0, width}, {0, height}}, new_width, new_height, {{0, new_width}, {0, new_height}}, filter};
}

View resized(const Box& source, std::int64_t size, Filter filter) {
  return {source, size, size, {{0, size}, {0, size}}, filter};
}

View fitted(std::int64_t width, std::int64_t height, std::int64_t shorter, std::int64_t size,
            Filter filter) {
  // The longer side is rounded down, as torchvision does.
  const std::int64_t full_width = shorter * width / std::min(width, height);
  const std::int64_t full_height = shorter * height / std::min(width, height);
  return {{{0, width}, {0, height}},
          full_width,
          full_height,
          {{centre(full_width - size), size}, {centre(full_height - size), size}},
          filter};
}

}  // namespace scaletrain::data
