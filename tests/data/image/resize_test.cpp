#include "lib/data/image/resize.h"

#include <doctest/doctest.h>

#include <cstdlib>

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
  CHECK(resize(image, fitted(5, 5, 5, 5)).pixels == image.pixels);
}

TEST_CASE("halving averages with a triangle, doubling interpolates") {
  const Image row = make_image(4, 1, [](auto x, auto, auto) { return 80 * x; });  // 0 80 160 240
  // Weights 3 3 1 of 7 at the left edge: (0 + 240 + 160) / 7 = 57.1.
  CHECK(reds(resize(row, {{{0, 4}, {0, 1}}, 2, 1, {{0, 2}, {0, 1}}})) == std::vector<int>{57, 183});
  // Pixel 1 lies at 0.25 between 0 and 80.
  CHECK(reds(resize(row, {{{0, 4}, {0, 1}}, 8, 1, {{0, 8}, {0, 1}}})) ==
        std::vector<int>{0, 20, 60, 100, 140, 180, 220, 240});
}

TEST_CASE("a window of the result is what a crop of the whole result is") {
  const Image image = make_image(31, 17, [](auto x, auto y, auto c) { return 7 * x * y + 50 * c; });
  const Image whole = resize(image, {{{2, 25}, {1, 15}}, 40, 9, {{0, 40}, {0, 9}}});
  const Image part = resize(image, {{{2, 25}, {1, 15}}, 40, 9, {{11, 20}, {3, 5}}});
  for (std::int64_t y = 0; y < 5; ++y) {
    CHECK(std::vector(part.row(y), part.row(y) + 60) ==
          std::vector(whole.row(y + 3) + 33, whole.row(y + 3) + 93));
  }
}

TEST_CASE("a bicubic filter overshoots at an edge and is cut to 0..255") {
  const Image row = make_image(8, 1, [](auto x, auto, auto) { return x < 4 ? 10 : 250; });
  const std::vector<int> values =
      reds(resize(row, resized({{0, 8}, {0, 1}}, 16, Filter::kBicubic)));
  // In steps of 1/4 off the middle of a pixel: 10 - 240 * 9/128 < 0 and 250 + 17 > 255.
  CHECK(values[6] == 0);
  CHECK(values[9] == 255);
  CHECK(values[0] == 10);
  CHECK(values[15] == 250);
}

TEST_CASE("a part of an image is resized as the same part of the whole") {
  const Image image = make_image(31, 17, [](auto x, auto y, auto c) { return 7 * x * y + 50 * c; });
  const View view{{{10, 15}, {5, 9}}, 11, 12, {{2, 7}, {3, 8}}};
  Resizer resizer;
  const Box needed = resizer.prepare(view, 1);
  CHECK(needed.x.begin >= 10);
  CHECK(needed.y.begin >= 5);
  const Image part = make_image(needed.x.size, needed.y.size, [&](auto x, auto y, auto c) {
    return image.row(y + needed.y.begin)[(x + needed.x.begin) * kChannels + c];
  });
  Image out;
  resizer.finish(part, needed.x.begin, needed.y.begin, out);
  CHECK(out.pixels == resize(image, view).pixels);
}

TEST_CASE("a picture shrunk when it was decoded is resized about the same places") {
  // A slope of 2 a column: half the size has 4 a column, from 1 on.
  const Image full = make_image(120, 8, [](auto x, auto, auto) { return 2 * x; });
  const Image half = make_image(60, 4, [](auto x, auto, auto) { return 4 * x + 1; });
  const View view{{{20, 60}, {0, 8}}, 15, 2, {{0, 15}, {0, 2}}};
  Resizer resizer;
  resizer.prepare(view, 2);
  Image out;
  resizer.finish(half, 0, 0, out);
  const std::vector<int> expected = reds(resize(full, view)), found = reds(out);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(std::abs(expected[i] - found[i]) <= 1);
}

TEST_CASE("a very long image costs no more than its window") {
  const Image out =
      resize(make_image(1, 60000, [](auto, auto, auto) { return 9; }), fitted(1, 60000, 224, 224));
  CHECK(out.width == 224);
  CHECK(out.height == 224);
  CHECK(out.pixels.front() == 9);
}
