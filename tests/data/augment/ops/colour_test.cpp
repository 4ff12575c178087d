#include "lib/data/augment/ops/colour.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

// Equality with Pillow over pictures is in tests/data/augment_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

Image one_colour(int red, int green, int blue) {
  return make_image(4, 4, [&](auto, auto, auto c) { return c == 0 ? red : c == 1 ? green : blue; });
}

std::vector<int> first_pixel(const Image& image) {
  return {image.pixels[0], image.pixels[1], image.pixels[2]};
}

}  // namespace

TEST_CASE("grey is 0.299 red, 0.587 green and 0.114 blue") {
  Image image = one_colour(100, 200, 50);
  Scratch scratch;
  CHECK(mean_luma(image, scratch) == 153);  // 29.9 + 117.4 + 5.7
  to_grey(image);
  CHECK(first_pixel(image) == std::vector<int>{153, 153, 153});
}

TEST_CASE("the mean of large images is rounded") {
  Scratch scratch;
  const auto mean = [&](int black) {  // of 300 x 300 pixels
    return mean_luma(make_image(300, 300, [&](auto, auto y, auto) { return y < black ? 0 : 255; }),
                     scratch);
  };
  CHECK(mean(0) == 255);
  CHECK(mean(300) == 0);
  CHECK(mean(150) == 128);  // 127.5
  CHECK(mean(151) == 127);  // 126.65
}

TEST_CASE("saturation 0 is grey, 1 changes nothing, 2 doubles the distance from grey") {
  Scratch scratch;
  for (const auto& [factor, expected] : {std::pair{0.0, std::vector<int>{153, 153, 153}},
                                         std::pair{1.0, std::vector<int>{100, 200, 50}},
                                         std::pair{2.0, std::vector<int>{47, 247, 0}}}) {
    Image image = one_colour(100, 200, 50);
    change_saturation(factor, image, scratch);
    CHECK(first_pixel(image) == expected);
  }
}

TEST_CASE("a third of the circle turns red into green, and grey stays") {
  Image red = one_colour(255, 0, 0);
  turn_hue(1.0 / 3, red);
  CHECK(first_pixel(red) == std::vector<int>{0, 255, 0});
  turn_hue(-1.0 / 3, red);
  CHECK(first_pixel(red) == std::vector<int>{255, 0, 0});
  Image grey = one_colour(80, 80, 80);
  turn_hue(0.3, grey);
  CHECK(first_pixel(grey) == std::vector<int>{80, 80, 80});
}

TEST_CASE("sharpness 0 smooths inside and leaves the edge") {
  Image image = make_image(3, 3, [](auto x, auto y, auto) { return x == 1 && y == 1 ? 130 : 0; });
  Scratch scratch;
  change_sharpness(0, image, scratch);
  CHECK(image.row(1)[3] == 50);  // 5 of 13 parts
  CHECK(image.row(0)[3] == 0);
}
