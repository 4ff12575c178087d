#include <doctest/doctest.h>

#include <algorithm>

#include "lib/data/augment/transform.h"
#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

Transforms crop(double scale_min, double scale_max, double ratio_min, double ratio_max) {
  return make_transforms({component("random_resized_crop", {{"scale_min", scale_min},
                                                            {"scale_max", scale_max},
                                                            {"ratio_min", ratio_min},
                                                            {"ratio_max", ratio_max},
                                                            {"filter", std::string("bilinear")}})});
}

}  // namespace

TEST_CASE("random_resized_crop of everything is a plain resize") {
  const Image image = make_image(20, 20, [](auto x, auto y, auto c) { return 11 * x + y * c; });
  const Image out = transformed(crop(1, 1, 1, 1), image, 8, 0);
  const Image expected = resize(image, resized({{0, 20}, {0, 20}}, 8));
  CHECK(out.pixels == expected.pixels);
}

TEST_CASE("random_resized_crop has the area and shape it was asked for, anywhere in the image") {
  // The red channel tells x and the green one y: the crop's corners show where it was.
  const Image image = make_image(200, 200, [](auto x, auto y, auto c) {
    return c == 0 ? x : c == 1 ? y : 0;
  });
  const Transforms transforms = crop(0.25, 0.25, 0.5, 2);
  int left = 200, right = 0, wide = 0, high = 0;
  for (std::uint64_t position = 0; position < 300; ++position) {
    const Image out = transformed(transforms, image, 50, position);
    REQUIRE(out.pixels.size() == 50 * 50 * 3);
    const std::uint8_t *const first = out.row(0), *const last = out.row(49) + 49 * 3;
    // From the middle of the first pixel to that of the last: 49 of 50 parts.
    const double width = (last[0] - first[0]) * 50.0 / 49,
                 height = (last[1] - first[1]) * 50.0 / 49;
    CHECK(width * height == doctest::Approx(10000).epsilon(0.05));
    CHECK(width / height > 0.47);
    CHECK(width / height < 2.13);
    left = std::min<int>(left, first[0]);
    right = std::max<int>(right, last[0]);
    (width > height ? wide : high) += 1;
  }
  CHECK(left < 10);
  CHECK(right > 190);
  CHECK(std::abs(wide - high) < 100);  // the logarithm of the shape is uniform
}

TEST_CASE("random_resized_crop of an image that no shape fits into takes its middle") {
  // 100 x 2 with at most 1.5 times the height: 3 x 2 in the middle, from column 48 on.
  const Image image = make_image(100, 2, [](auto x, auto, auto) { return x; });
  const Image out = transformed(crop(1, 1, 1, 1.5), image, 6, 0);
  const Image expected = resize(image, resized({{48, 3}, {0, 2}}, 6));
  CHECK(out.pixels == expected.pixels);
}
