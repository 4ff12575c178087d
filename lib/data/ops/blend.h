// Pillow's Image.blend of bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace scaletrain::data {

// base + alpha * (value - base), cut to 0..255 and then to a whole number.
inline std::uint8_t blend(std::uint8_t base, std::uint8_t value, float alpha) {
  const float result = static_cast<float>(base) + alpha * static_cast<float>(value - base);
  return static_cast<std::uint8_t>(
      static_cast<std::int32_t>(std::min(std::max(result, 0.0F), 255.0F)));
}

}  // namespace scaletrain::data
