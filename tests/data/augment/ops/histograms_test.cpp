#include "lib/data/augment/ops/histograms.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

// Equality with Pillow over pictures is in tests/data/augment_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<int> pixel(const Image& image, std::int64_t x, std::int64_t y) {
  const std::uint8_t* const values = image.row(y) + x * kChannels;
  return {values[0], values[1], values[2]};
}

}  // namespace

TEST_CASE("contrast is stretched channel by channel, whatever the size") {
  for (const std::int64_t size : {2, 7, 20, 64}) {
    CAPTURE(size);
    // Red 50 and 101, once 75, green all 7, blue 0 and 255.
    Image image = make_image(size, size, [&](auto x, auto y, auto c) {
      if (c == 1) return 7;
      if (c == 2) return x == 0 ? 0 : 255;
      return x == 0 && y == 0 ? 75 : x == 0 ? 50 : 101;
    });
    auto_contrast(image);
    CHECK(pixel(image, 0, 0) == std::vector<int>{125, 7, 0});  // 25 * 255 / 51
    CHECK(pixel(image, 0, size - 1) == std::vector<int>{0, 7, 0});
    CHECK(pixel(image, size - 1, size - 1) == std::vector<int>{255, 7, 255});
  }
}

TEST_CASE("values are used evenly") {
  // Four values, 400 of each: below the last 1,200, in steps of 1,200 / 255 = 4 from 2 on.
  Image image = make_image(40, 40, [](auto x, auto, auto c) { return c == 0 ? 10 * (x / 10) : 9; });
  equalize(image);
  CHECK(pixel(image, 0, 0) == std::vector<int>{0, 9, 9});      // 2 / 4
  CHECK(pixel(image, 10, 0) == std::vector<int>{100, 9, 9});   // 402 / 4
  CHECK(pixel(image, 30, 39) == std::vector<int>{255, 9, 9});  // 1,202 / 4, cut
}

TEST_CASE("an image that uses too few values stays as it is") {
  // 200 of 400 values below the last: a step of 200 / 255 = 0.
  const Image image = make_image(20, 20, [](auto x, auto, auto) { return x < 10 ? 50 : 101; });
  Image same = image;
  equalize(same);
  CHECK(same.pixels == image.pixels);
}
