// The brightness of a pixel.
#pragma once

#include <array>
#include <cstdint>

namespace scaletrain::data {

// Weights of ITU-R 601-2 in 16-bit fixed point, as in Pillow's conversion to "L": 0.299 R + 0.587 G
// + 0.114 B.
inline constexpr std::array<int, 3> kLumaWeights{19595, 38470, 7471};  // red, green, blue
inline constexpr int kLumaHalf = 0x8000, kLumaBits = 16;

// Returns the rounded luma of an RGB pixel. A grey pixel keeps its value.
constexpr std::uint8_t luma(const std::uint8_t* pixel) {
  const int sum =
      pixel[0] * kLumaWeights[0] + pixel[1] * kLumaWeights[1] + pixel[2] * kLumaWeights[2];
  return static_cast<std::uint8_t>((sum + kLumaHalf) >> kLumaBits);
}

}  // namespace scaletrain::data
