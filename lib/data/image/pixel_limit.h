// Limit of a picture's size.
#pragma once

#include <cstdint>

namespace scaletrain::data {

inline constexpr std::int64_t kMaxPixels = 100'000'000;  // 300 MB decoded

// Throws std::invalid_argument for an image of more than `most` pixels (data.max_pixels).
void check_pixels(std::int64_t width, std::int64_t height, std::int64_t most = kMaxPixels);

}  // namespace scaletrain::data
