// Pillow's Image.blend for single bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace scaletrain::data {

// base + alpha * (value - base), truncated and then clamped to 0..255; truncating before clamping
// takes fewer vector instructions and gives the same result. |alpha| is below a million.
inline std::uint8_t blend(std::uint8_t base, std::uint8_t value, float alpha) {
  const float result = static_cast<float>(base) + alpha * static_cast<float>(value - base);
  return static_cast<std::uint8_t>(std::min(std::max(static_cast<std::int32_t>(result), 0), 255));
}

}  // namespace scaletrain::data
