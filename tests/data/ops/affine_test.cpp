#include "lib/data/ops/affine.h"

#include <doctest/doctest.h>

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
