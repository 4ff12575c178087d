#include "lib/data/image/luma.h"

#include <doctest/doctest.h>

#include <array>

namespace scaletrain::data {

// The numbers are Pillow 13's: Image.new("RGB", (1, 1), colour).convert("L").
TEST_CASE("a pixel's brightness is Pillow's, rounded") {
  const auto of = [](std::uint8_t red, std::uint8_t green, std::uint8_t blue) {
    const std::array<std::uint8_t, 3> pixel{red, green, blue};
    return static_cast<int>(luma(pixel.data()));
  };
  CHECK(of(255, 0, 0) == 76);
  CHECK(of(0, 255, 0) == 150);
  CHECK(of(0, 0, 255) == 29);
  CHECK(of(1, 0, 0) == 0);
  CHECK(of(0, 1, 0) == 1);
  for (int value = 0; value < 256; ++value) {
    const auto byte = static_cast<std::uint8_t>(value);
    CHECK(of(byte, byte, byte) == value);
  }
}

}  // namespace scaletrain::data
