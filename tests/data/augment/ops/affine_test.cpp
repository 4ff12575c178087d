#include "lib/data/augment/ops/affine.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/data/image_support.h"

// Equality with Pillow over pictures is in tests/data/augment_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

const Image kSource = make_image(5, 4, [](auto x, auto y, auto) { return 100 + 10 * y + x; });

std::vector<int> moved(const Affine& affine, Sampling sampling) {
  Image image = kSource;
  Scratch scratch;
  apply_affine(affine, sampling, {1, 2, 3}, image, scratch);
  std::vector<int> reds;
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) reds.push_back(image.pixels[i]);
  return reds;
}

}  // namespace

TEST_CASE("no movement changes nothing") {
  for (const Sampling sampling : {Sampling::kNearest, Sampling::kBilinear}) {
    CHECK(moved({}, sampling)[7] == 112);
    CHECK(moved({}, sampling)[19] == 134);
  }
}

TEST_CASE("what comes from outside is filled") {
  for (const Sampling sampling : {Sampling::kNearest, Sampling::kBilinear}) {
    const std::vector<int> right = moved({.c = -2}, sampling);
    CHECK(std::vector(right.begin(), right.begin() + 5) == std::vector<int>{1, 1, 100, 101, 102});
    const std::vector<int> up = moved({.f = 3}, sampling);
    CHECK(std::vector(up.begin(), up.begin() + 6) == std::vector<int>{130, 131, 132, 133, 134, 1});
    const std::vector<int> away = moved({.c = 50}, sampling);
    CHECK(std::count(away.begin(), away.end(), 1) == 20);
  }
}

TEST_CASE("every pixel comes from its own place, and none from behind the image") {
  // Of a large image, where single pixels are not copied one by one; in memory of its size.
  const auto value = [](auto x, auto y, auto c) { return 3 * x + 7 * y + 80 * c; };
  const Image source = make_image(70, 50, value);
  for (const Affine& affine : {Affine{}, Affine{.b = 0.2113}, Affine{.d = 0.1071},
                               Affine{.d = -0.2917}, Affine{.c = -5, .f = 3}, rotation(90, 70, 50),
                               rotation(-9, 70, 50), rotation(180, 70, 50)}) {
    Image image = source;
    Scratch scratch;
    apply_affine(affine, Sampling::kNearest, {1, 2, 3}, image, scratch);
    int wrong = 0;
    for (std::int64_t y = 0; y < 50; ++y) {
      for (std::int64_t x = 0; x < 70; ++x) {
        const double u = static_cast<double>(x) + 0.5, v = static_cast<double>(y) + 0.5;
        const auto from_x = static_cast<int>(std::floor(affine.a * u + affine.b * v + affine.c));
        const auto from_y = static_cast<int>(std::floor(affine.d * u + affine.e * v + affine.f));
        const bool inside = from_x >= 0 && from_x < 70 && from_y >= 0 && from_y < 50;
        for (int c = 0; c < 3; ++c) {
          const int expected = inside ? value(from_x, from_y, c) % 256 : c + 1;
          wrong += image.row(y)[3 * x + c] == expected ? 0 : 1;
        }
      }
    }
    CHECK(wrong < 30);  // places on the edge between two pixels, by 16 bits behind the point
  }
}

TEST_CASE("between pixels the nearest or the weighted mean is taken") {
  CHECK(moved({.c = 0.25}, Sampling::kNearest)[1] == 101);
  // 101 * 0.5 + 102 * 0.5, cut to a whole number.
  CHECK(moved({.c = 0.5}, Sampling::kBilinear)[1] == 101);
  // 101 * 0.5 + 111 * 0.5.
  CHECK(moved({.f = 0.5}, Sampling::kBilinear)[1] == 106);
}

TEST_CASE("a rotation by 180 degrees turns the image about its middle") {
  const std::vector<int> turned = moved(rotation(180, 5, 4), Sampling::kNearest);
  CHECK(turned.front() == 134);
  CHECK(turned.back() == 100);
}
