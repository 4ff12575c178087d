// What a batch of the grey pictures of tests/data/image_support.h holds.
#pragma once

#include <vector>

#include "lib/data/loader/image_batch.h"

namespace scaletrain::data {

// The grey of every sample, in order.
inline std::vector<int> numbers(const Batch& batch) {
  std::vector<int> result;
  for (std::int64_t i = 0; i < batch.count; ++i) {
    result.push_back(pixels_of(batch)[static_cast<std::size_t>(i * 4 * 4 * 3)]);
  }
  return result;
}

}  // namespace scaletrain::data
