#include "lib/data/image/plain_png.h"

#include <doctest/doctest.h>

#include "lib/data/image/decode.h"
#include "tests/data/image_support.h"

// Files as Pillow writes them are in tests/data/pillow_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

Pixels wave(std::int64_t width, std::int64_t height, std::int64_t channels) {
  Pixels pixels{width, height, channels};
  for (std::int64_t i = 0; i < width * height * channels; ++i) {
    pixels.values.push_back(static_cast<std::uint8_t>(i / channels * 3 + i * i % 7 + i / 40));
  }
  return pixels;
}

constexpr std::int64_t kAll = 1000;

}  // namespace

TEST_CASE("a plain PNG of every kind and width is what libpng makes of it") {
  PlainPng png;
  for (std::int64_t channels = 1; channels <= 4; ++channels) {
    for (const std::int64_t width : {1, 2, 3, 17, 64, 333}) {
      const std::string file = encode_png(wave(width, 31, channels));
      Image ours, theirs;
      CAPTURE(channels);
      CAPTURE(width);
      REQUIRE(png.decode(file, kAll, ours));
      decode_png(file, theirs);
      CHECK(ours.width == width);
      CHECK(ours.height == 31);
      CHECK(ours.pixels == theirs.pixels);
      CHECK(png_size(file).width == width);
      CHECK(png_size(file).height == 31);
      Image rows;
      REQUIRE(png.decode(file, 10, rows));
      CHECK(rows.height == 10);
      CHECK(std::equal(rows.pixels.begin(), rows.pixels.end(), theirs.pixels.begin()));
    }
  }
}

TEST_CASE("what is not plain is left to libpng") {
  PlainPng png;
  Image image;
  CHECK_FALSE(png.decode(encode_png(wave(20, 20, 3), 16), kAll, image));
  CHECK_FALSE(png.decode(encode_png(wave(20, 20, 3), 8, true), kAll, image));
}

TEST_CASE("nothing is accepted that libpng refuses") {
  PlainPng png;
  Image image;
  const std::string file = encode_png(wave(20, 20, 3));
  REQUIRE(png.decode(file, kAll, image));
  for (std::size_t bytes = 8; bytes < file.size(); ++bytes) {
    CHECK_FALSE(png.decode(file.substr(0, bytes), kAll, image));
  }
  for (std::size_t at = 8; at < file.size(); ++at) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    if (!png.decode(flipped, 1, image)) continue;
    CAPTURE(at);
    CHECK_NOTHROW(decode_png(flipped, image));
  }
}
