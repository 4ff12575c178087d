#include "lib/data/resize.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

// Equality with Pillow over many shapes is tests/data/pillow_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<int> reds(const Image& image) {
  std::vector<int> values;
  for (std::size_t i = 0; i < image.pixels.size(); i += kChannels)
    values.push_back(image.pixels[i]);
  return values;
}

}  // namespace

TEST_CASE("the same size is the same image") {
  const Image image = make_image(5, 5, [](auto x, auto y, auto c) { return 40 * x + 5 * y + c; });
  Image out;
  Resizer().fit(image, 5, out);
  CHECK(out.pixels == image.pixels);
}

TEST_CASE("halving averages with a triangle, doubling interpolates") {
  const Image row = make_image(4, 1, [](auto x, auto, auto) { return 80 * x; });  // 0 80 160 240
  Image out;
  Resizer resizer;
  // Weights 3 3 1 of 7 at the left edge: (0 + 240 + 160) / 7 = 57.1.
  resizer.resize(row, {{0, 4}, {0, 1}}, 2, 1, {{0, 2}, {0, 1}}, out);
  CHECK(reds(out) == std::vector<int>{57, 183});
  // Pixel 1 lies at 0.25 between 0 and 80.
  resizer.resize(row, {{0, 4}, {0, 1}}, 8, 1, {{0, 8}, {0, 1}}, out);
  CHECK(reds(out) == std::vector<int>{0, 20, 60, 100, 140, 180, 220, 240});
}

TEST_CASE("a window of the result is what a crop of the whole result is") {
  const Image image = make_image(31, 17, [](auto x, auto y, auto c) { return 7 * x * y + 50 * c; });
  Image whole, part;
  Resizer().resize(image, {{2, 25}, {1, 15}}, 40, 9, {{0, 40}, {0, 9}}, whole);
  Resizer().resize(image, {{2, 25}, {1, 15}}, 40, 9, {{11, 20}, {3, 5}}, part);
  for (std::int64_t y = 0; y < 5; ++y) {
    CHECK(std::vector(part.row(y), part.row(y) + 60) ==
          std::vector(whole.row(y + 3) + 33, whole.row(y + 3) + 93));
  }
}

TEST_CASE("fit resizes the shorter side and keeps the centre") {
  // 6 x 2 to 2: columns 2 and 3.
  const Image wide = make_image(6, 2, [](auto x, auto, auto) { return 10 * x; });
  Image out;
  Resizer resizer;
  resizer.fit(wide, 2, out);
  CHECK(reds(out) == std::vector<int>{20, 30, 20, 30});
  // 1 x 7 to 1: row 3; 1 x 8: half of 7 is 3.5, rounded to the even 4.
  resizer.fit(make_image(1, 7, [](auto, auto y, auto) { return 10 * y; }), 1, out);
  CHECK(reds(out) == std::vector<int>{30});
  resizer.fit(make_image(1, 8, [](auto, auto y, auto) { return 10 * y; }), 1, out);
  CHECK(reds(out) == std::vector<int>{40});
}

TEST_CASE("a very long image costs no more than its window") {
  Image out;
  Resizer().fit(make_image(1, 60000, [](auto, auto, auto) { return 9; }), 224, out);
  CHECK(out.width == 224);
  CHECK(out.height == 224);
  CHECK(out.pixels.front() == 9);
}
