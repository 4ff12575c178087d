#include "lib/data/image/encode.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <stdexcept>

#include "lib/core/error.h"
#include "lib/data/image/decode.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

// A picture without sharp edges, so that JPEG keeps it.
Image smooth(std::int64_t width, std::int64_t height) {
  Image image;
  image.reshape(width, height);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width * kChannels; ++x) {
      image.row(y)[x] = static_cast<std::uint8_t>(40 + 2 * y + x / kChannels);
    }
  }
  return image;
}

int largest_difference(const Image& a, const Image& b) {
  REQUIRE(a.width == b.width);
  REQUIRE(a.height == b.height);
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  }
  return largest;
}

}  // namespace

TEST_CASE("what is encoded is decoded: PNG and rgb8 to the bit, JPEG nearly") {
  Decoder decoder;
  Image decoded;
  const Image image = smooth(37, 21);
  decoder.decode(to_png(image), decoded);
  CHECK(largest_difference(image, decoded) == 0);
  decoder.decode(to_jpeg(image, 95), decoded);
  CHECK(largest_difference(image, decoded) <= 4);
  CHECK(to_jpeg(image, 30).size() < to_jpeg(image, 95).size());
  decoder.decode(to_rgb8(image), decoded);
  CHECK(largest_difference(image, decoded) == 0);
  CHECK(to_rgb8(smooth(2, 1)).size() == 16 + 2 * 3);
  CHECK_THROWS_WITH_AS(to_jpeg(smooth(65501, 1), 90),
                       "Maximum supported image dimension is 65500 pixels", std::invalid_argument);
}

TEST_CASE("a JPEG has a restart marker behind each 64 pixels of a row of blocks") {
  const std::string file = to_jpeg(smooth(90, 28), 95);  // 2 rows of 6 blocks of 16 x 16: 3 times 4
  std::size_t at = file.find("\xff\xda");
  for (const std::string marker : {"\xff\xd0", "\xff\xd1", "\xff\xd9"}) {
    at = file.find(marker, at);
    CHECK(at != std::string::npos);
  }
  CHECK(file.find("\xff\xd2") == std::string::npos);
  CHECK(at == file.size() - 2);
}

TEST_CASE("an encoding is jpeg:QUALITY, png or raw") {
  CHECK(parse_encoding("jpeg", "--e").quality == 90);
  CHECK(parse_encoding("jpeg:1", "--e").quality == 1);
  CHECK(parse_encoding("jpeg:75", "--e").extension() == "jpg");
  CHECK(parse_encoding("png", "--e").extension() == "png");
  CHECK(parse_encoding("raw", "--e").extension() == "rgb8");
  for (const std::string text : {"", "jpg", "jpeg:", "jpeg:0", "jpeg:101", "jpeg:9x"}) {
    CHECK_THROWS_WITH_AS(
        parse_encoding(text, "--e"),
        ("--e: \"" + text + "\" is not an encoding\n  use one of: jpeg:1 to jpeg:100, png, raw")
            .c_str(),
        scaletrain::core::UsageError);
  }
}
