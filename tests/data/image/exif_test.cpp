#include "lib/data/image/exif.h"

#include <doctest/doctest.h>

#include "lib/data/image/decode.h"
#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

// An APP1 segment's content with one entry, big-endian or little-endian.
std::string segment(char orientation, bool little) {
  const std::string_view big("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0?\0\0\0\0\0\0", 26);
  const std::string_view small("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0?\0\0\0\0\0\0\0", 26);
  std::string tiff(little ? small : big);
  tiff[tiff.find('?')] = orientation;
  return std::string("Exif\0\0", 6) + tiff;
}

}  // namespace

TEST_CASE("the orientation is read in both byte orders") {
  for (const bool little : {false, true}) {
    CHECK(exif_orientation(segment(6, little)) == 6);
    CHECK(exif_orientation(segment(1, little)) == 1);
    CHECK(exif_orientation(segment(9, little)) == 0);
  }
}

TEST_CASE("what is no EXIF or is cut has no orientation") {
  const std::string whole = segment(6, true);
  CHECK(exif_orientation("") == 0);
  CHECK(exif_orientation("http://ns.adobe.com/xap/1.0/") == 0);
  for (std::size_t bytes = 0; bytes < 26; ++bytes)
    CHECK(exif_orientation(whole.substr(0, bytes)) == 0);
  std::string far = whole;
  far[10] = '\x7f';  // the directory lies outside
  CHECK(exif_orientation(far) == 0);
}

TEST_CASE("the chunks of PNG and WebP are found, wherever they stand") {
  const auto be = [](std::size_t number) {
    return std::string{'\0', '\0', static_cast<char>(number >> 8U), static_cast<char>(number)};
  };
  const auto le = [&](std::size_t number) {
    const std::string big = be(number);
    return std::string(big.rbegin(), big.rend());
  };
  const std::string tiff = segment(8, true).substr(6);
  const auto png = [&](const std::string& name, const std::string& bytes) {
    return be(bytes.size()) + name + bytes + "sum?";
  };
  const auto riff = [&](const std::string& name, const std::string& bytes) {
    return name + le(bytes.size()) + bytes + std::string(bytes.size() % 2, '\0');
  };
  const std::string png_file =
      "\x89PNG\r\n\x1a\n" + png("IHDR", std::string(13, 'h')) + png("eXIf", tiff) + png("IEND", "");
  CHECK(png_orientation(png_file) == 8);
  const std::string head = "RIFF" + le(9) + "WEBP" + riff("VP8X", "odd");
  CHECK(webp_orientation(head + riff("EXIF", tiff)) == 8);
  CHECK(webp_orientation(head + riff("EXIF", segment(3, false))) == 3);
  CHECK(webp_orientation(head + riff("XMP ", tiff)) == 0);
  for (std::size_t bytes = 0; bytes < png_file.size(); ++bytes) {
    const int found = png_orientation(std::string_view(png_file).substr(0, bytes));
    CHECK((found == 0 || found == 8));
  }
  CHECK(png_orientation(head) == 0);
  CHECK(png_orientation("") == 0);
}

TEST_CASE("a picture is turned upright") {
  // The first pixel and its neighbours to the right and below, as stored, of 2 x 3.
  const Image stored = make_image(2, 3, [](auto x, auto y, auto) { return 10 * y + x; });
  const auto upright = [&](int orientation) {
    Image image = stored, spare;
    apply_orientation(orientation, image, spare);
    std::vector<int> reds;
    for (std::size_t i = 0; i < image.pixels.size(); i += 3) reds.push_back(image.pixels[i]);
    CHECK(image.width == (orientation >= 5 ? 3 : 2));
    return reds;
  };
  CHECK(upright(1) == std::vector<int>{0, 1, 10, 11, 20, 21});
  CHECK(upright(2) == std::vector<int>{1, 0, 11, 10, 21, 20});  // mirrored
  CHECK(upright(3) == std::vector<int>{21, 20, 11, 10, 1, 0});  // upside down
  CHECK(upright(4) == std::vector<int>{20, 21, 10, 11, 0, 1});  // mirrored upside down
  CHECK(upright(5) == std::vector<int>{0, 10, 20, 1, 11, 21});  // transposed
  CHECK(upright(6) == std::vector<int>{20, 10, 0, 21, 11, 1});  // to be turned clockwise
  CHECK(upright(7) == std::vector<int>{21, 11, 1, 20, 10, 0});
  CHECK(upright(8) == std::vector<int>{1, 11, 21, 0, 10, 20});  // to be turned counter-clockwise
}

TEST_CASE("a JPEG is turned on request, as a whole and in a view") {
  std::string file = encode_jpeg({16, 8, 1, std::vector<std::uint8_t>(128, 90)});
  const std::string exif = segment(6, false);
  const std::string head{'\xff', '\xe1', '\0', static_cast<char>(exif.size() + 2)};
  file.insert(2, head + exif);
  for (const bool turns : {false, true}) {
    Decoder decoder({.exif_orientation = turns});
    Image image;
    decoder.decode(file, image);
    CHECK(image.width == (turns ? 8 : 16));
    decoder.decode_view(
        file,
        [&](std::int64_t width, std::int64_t height) {
          CHECK(width == (turns ? 8 : 16));
          return fitted(width, height, 4, 4);
        },
        image);
    CHECK(image.width == 4);
    CHECK(image.pixels.back() == 90);
  }
}
