#include "lib/format/rgb8.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

TEST_CASE("an rgb8 file is that of docs/reference/formats/rgb8.md") {
  const std::string header(
      "sctrgb8\n"
      "\x02\0\0\0"
      "\x01\0\0\0",
      16);
  CHECK(rgb8_header({2, 1}) == header);
  const Rgb8Size size = parse_rgb8(header + "\xff" + std::string(2, '\0') + "\xff\xff\xff");
  CHECK(size.width == 2);
  CHECK(size.height == 1);
}

TEST_CASE("an rgb8 file of another length, magic or size is refused") {
  const auto error = [](const std::string& file) -> std::string {
    try {
      parse_rgb8(file);
    } catch (const std::invalid_argument& found) {
      return found.what();
    }
    return "nothing was thrown";
  };
  const std::string sound = rgb8_header({2, 3}) + std::string(18, 'p');
  CHECK(error(sound) == "nothing was thrown");
  CHECK(error(sound + "p") == "19 bytes of pixels are not 3 x 2 x 3");
  CHECK(error(sound.substr(0, 33)) == "17 bytes of pixels are not 3 x 2 x 3");
  CHECK(error(sound.substr(0, 15)) == "its first bytes are not an rgb8 header");
  CHECK(error("S" + sound.substr(1)) == "its first bytes are not an rgb8 header");
  CHECK(error(rgb8_header({0, 3})) == "0 bytes of pixels are not 3 x 0 x 3");
  // 2^32 - 1 squared and times 3 passes 2^64.
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  CHECK(error(rgb8_header({kMost, kMost}) + "pqr") ==
        "3 bytes of pixels are not 4294967295 x 4294967295 x 3");
}
