#include "lib/data/augment/ops/blur.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

// The distance from torchvision over pictures is in tests/data/augment_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("a point is spread as the kernel says") {
  Image image = make_image(7, 7, [](auto x, auto y, auto) { return x == 3 && y == 3 ? 255 : 0; });
  Scratch scratch;
  gaussian_blur(3, 1.0, image, scratch);
  // exp(-1/2) = 0.607 beside 1: 0.274, 0.452, 0.274; 255 times the products.
  CHECK(image.row(3)[9] == 52);
  CHECK(image.row(3)[6] == 32);
  CHECK(image.row(2)[6] == 19);
  CHECK(image.row(1)[9] == 0);
}

TEST_CASE("one colour stays, whatever the kernel and the size") {
  for (const std::int64_t size : {1, 2, 5, 40}) {
    Image image = make_image(size, size, [](auto, auto, auto c) { return 100 + c; });
    const auto before = image.pixels;
    Scratch scratch;
    gaussian_blur(23, 2.0, image, scratch);
    CHECK(image.pixels == before);
  }
}
