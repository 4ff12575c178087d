#include "lib/data/image/decode.h"

#include <doctest/doctest.h>
#include <turbojpeg.h>
#include <webp/encode.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "lib/data/image/pixel_limit.h"
#include "lib/format/rgb8.h"
#include "tests/data/image_support.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

Image decode(const std::string& file) {
  Decoder decoder;
  Image image;
  decoder.decode(file, image);
  return image;
}

std::string error_of(const std::string& file) {
  try {
    decode(file);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

using Bytes = std::vector<std::uint8_t>;

// Two pixels.
const Pixels kGrey{2, 1, 1, {10, 200}};
const Pixels kGreyAlpha{2, 1, 2, {10, 0, 200, 128}};
const Pixels kRgb{2, 1, 3, {1, 2, 3, 250, 251, 252}};
const Pixels kRgba{2, 1, 4, {1, 2, 3, 0, 250, 251, 252, 255}};

// A picture with some detail.
Pixels noise(std::int64_t width, std::int64_t height, std::int64_t channels) {
  Pixels pixels{width, height, channels};
  for (std::int64_t i = 0; i < width * height * channels; ++i) {
    pixels.values.push_back(static_cast<std::uint8_t>(i * i % 251));
  }
  return pixels;
}

}  // namespace

TEST_CASE("PNG of every kind becomes RGB") {
  CHECK(decode(encode_png(kGrey)).pixels == Bytes{10, 10, 10, 200, 200, 200});
  CHECK(decode(encode_png(kGreyAlpha)).pixels == Bytes{10, 10, 10, 200, 200, 200});
  CHECK(decode(encode_png(kRgb)).pixels == kRgb.values);
  CHECK(decode(encode_png(kRgba)).pixels == kRgb.values);
  CHECK(decode(encode_png(kRgb, 16)).pixels == kRgb.values);         // 250 * 257 of 65535
  const Image image = decode(encode_png(noise(13, 9, 3), 8, true));  // interlaced
  CHECK(image.width == 13);
  CHECK(image.height == 9);
  CHECK(image.pixels == noise(13, 9, 3).values);
}

TEST_CASE("JPEG, grey and CMYK too, becomes RGB") {
  const Image grey = decode(encode_jpeg({16, 8, 1, Bytes(128, 90)}));
  CHECK(grey.width == 16);
  CHECK(grey.height == 8);
  CHECK(grey.pixels == Bytes(384, 90));
  const Image rgb = decode(encode_jpeg({16, 8, 3, Bytes(384, 90)}));
  CHECK(rgb.pixels == Bytes(384, 90));
  // 255 is no ink: 100 x 128 / 255 = 50.2.
  Pixels cmyk{16, 8, 4};
  for (int i = 0; i < 128; ++i) cmyk.values.insert(cmyk.values.end(), {100, 100, 100, 128});
  for (const std::uint8_t value : decode(encode_jpeg(cmyk)).pixels)
    CHECK(std::abs(value - 50) <= 2);
}

TEST_CASE("the first bytes decide, not the name") {
  CHECK(error_of("") == "its first bytes are not those of PNG, JPEG, WebP or rgb8");
  CHECK(error_of("GIF89a") == "its first bytes are not those of PNG, JPEG, WebP or rgb8");
}

TEST_CASE("a damaged PNG is refused") {
  const std::string file = encode_png(noise(40, 40, 3));
  std::string flipped = file;
  flipped[file.size() / 2] = static_cast<char>(flipped[file.size() / 2] ^ 1);
  CHECK(error_of(flipped) == "IDAT: incorrect data check");
  for (const std::size_t bytes : {8UL, 20UL, 33UL, file.size() / 2, file.size() - 1}) {
    CAPTURE(bytes);
    CHECK(error_of(file.substr(0, bytes)) == "the file is truncated");
  }
}

TEST_CASE("a truncated JPEG is refused, not filled with grey") {
  const std::string file = encode_jpeg(noise(64, 64, 3));
  CHECK(error_of(file) == "nothing was thrown");
  CHECK(error_of(file.substr(0, file.size() / 2)) == "Premature end of JPEG file");
  CHECK(error_of(file.substr(0, file.size() - 2)) == "Premature end of JPEG file");
  CHECK(error_of(file.substr(0, 10)) != "nothing was thrown");
}

TEST_CASE("an image of too many pixels is refused before it is decoded") {
  CHECK_THROWS_WITH(
      check_pixels(60000, 60000),
      "60000 x 60000 pixels are more than data.max_pixels allows, which is 100000000");
  CHECK_NOTHROW(check_pixels(10000, 10000));
  std::string jpeg = encode_jpeg(noise(16, 16, 3));
  const std::size_t frame = jpeg.find("\xff\xc0");
  REQUIRE(frame != std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");  // height and width 65,500
  CHECK(error_of(jpeg) ==
        "65500 x 65500 pixels are more than data.max_pixels allows, which is 100000000");
}

TEST_CASE("a decoder goes on after a damaged file") {
  Decoder decoder;
  Image image;
  const std::string jpeg = encode_jpeg({16, 8, 1, Bytes(128, 90)}), png = encode_png(kGrey);
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS(decoder.decode(jpeg.substr(0, jpeg.size() - 20), image));
    CHECK_THROWS(decoder.decode(png.substr(0, png.size() - 20), image));
    decoder.decode(jpeg, image);
    CHECK(image.pixels == Bytes(384, 90));
    decoder.decode(png, image);
    CHECK(image.pixels == Bytes{10, 10, 10, 200, 200, 200});
  }
}

TEST_CASE("WebP becomes RGB, and a damaged one is refused") {
  std::uint8_t* data = nullptr;
  const Pixels pixels = noise(24, 18, 3);
  const std::size_t bytes = WebPEncodeLosslessRGB(pixels.values.data(), 24, 18, 72, &data);
  const std::string file(reinterpret_cast<const char*>(data), bytes);
  WebPFree(data);
  const Image image = decode(file);
  CHECK(image.width == 24);
  CHECK(image.pixels == pixels.values);
  CHECK(error_of(file.substr(0, file.size() - 20)) == "the file is truncated");
  CHECK(error_of(file.substr(0, 14)) == "the file is truncated");
  std::string flipped = file;
  flipped.replace(24, 8, "damaged!");
  CHECK(error_of(flipped) != "nothing was thrown");
}

TEST_CASE("rgb8 is its pixels, as a whole and in a view") {
  const Pixels pixels = noise(9, 7, 3);
  const std::string file = scaletrain::format::rgb8_header({9, 7}) +
                           std::string(pixels.values.begin(), pixels.values.end());
  const Image image = decode(file);
  CHECK(image.width == 9);
  CHECK(image.pixels == pixels.values);
  CHECK(error_of(file + "x") == "190 bytes of pixels are not 7 x 9 x 3");
  Image part;
  const View view = resized({{2, 5}, {1, 6}}, 4);
  Decoder().decode_view(
      file, [&](auto, auto) { return view; }, part);
  CHECK(part.pixels == resize(image, view).pixels);
}

TEST_CASE("a view of a JPEG that is not shrunk is that of the whole picture") {
  const std::string file = encode_jpeg(noise(90, 70, 3), 90, TJSAMP_420);
  for (const View& view : {resized({{20, 50}, {11, 40}}, 24), fitted(90, 70, 32, 24),
                           resized({{0, 90}, {0, 70}}, 30, Filter::kBicubic)}) {
    Image part;
    Decoder().decode_view(
        file,
        [&](std::int64_t width, std::int64_t height) {
          CHECK(width == 90);
          CHECK(height == 70);
          return view;
        },
        part);
    CHECK(part.pixels == resize(decode(file), view).pixels);
  }
}

TEST_CASE("the first frame of an animated WebP is decoded, on a black background") {
  std::uint8_t* data = nullptr;
  const Pixels pixels = noise(6, 4, 3);
  const std::size_t bytes = WebPEncodeLosslessRGB(pixels.values.data(), 6, 4, 18, &data);
  const std::string still(reinterpret_cast<const char*>(data), bytes);
  WebPFree(data);
  const auto number = [](std::size_t value, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const auto chunk = [&](const std::string& name, const std::string& content) {
    return name + number(content.size(), 4) + content + std::string(content.size() % 2, '\0');
  };
  // A canvas of 10 x 8, the frame at (2, 4): places are halved, sizes one less.
  const auto frame = [&](std::size_t left, std::size_t top, const std::string& picture) {
    return chunk("ANMF", number(left / 2, 3) + number(top / 2, 3) + number(5, 3) + number(3, 3) +
                             number(40, 3) + number(0, 1) + picture);
  };
  const auto animation = [&](const std::string& frames) {
    const std::string content = "WEBP" + chunk("VP8X", number(2, 4) + number(9, 3) + number(7, 3)) +
                                chunk("ANIM", number(0, 6)) + frames;
    return "RIFF" + number(content.size(), 4) + content;
  };
  const std::string picture = still.substr(12), other = frame(0, 0, picture);
  const Image image = decode(animation(frame(2, 4, picture) + other));
  CHECK(image.width == 10);
  CHECK(image.height == 8);
  CHECK(std::count(image.pixels.begin(), image.pixels.begin() + 4 * 30, 0) == 4 * 30);
  for (std::int64_t y = 0; y < 4; ++y) {
    const std::uint8_t* const row = image.row(4 + y) + 2 * kChannels;
    CHECK(std::equal(row, row + 18, pixels.values.begin() + y * 18));
  }
  CHECK(error_of(animation(frame(6, 0, picture) + other)) == "a frame outside of the picture");
  CHECK(error_of(animation("")) == "an animation without a frame");
  const std::string whole = animation(frame(2, 4, picture));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK(error_of(whole.substr(0, size)) != "nothing was thrown");
  }
}

TEST_CASE("a lenient decoder takes what libjpeg only warns about, and says so") {
  const std::string file = encode_jpeg(noise(64, 64, 3)), cut = file.substr(0, file.size() / 2);
  Decoder lenient({.lenient_jpeg = true});
  Image whole, image;
  lenient.decode(file, whole);
  CHECK(lenient.warning().empty());
  lenient.decode(cut, image);
  CHECK(lenient.warning() == "Premature end of JPEG file");
  CHECK(image.height == 64);
  CHECK(std::equal(image.row(0), image.row(16), whole.row(0)));  // what is there
  lenient.decode(file, image);
  CHECK(lenient.warning().empty());
  CHECK(image.pixels == whole.pixels);
  int asked = 0;
  const auto view_of = [&asked](std::int64_t width, std::int64_t height) {
    ++asked;
    return fitted(width, height, 16, 16);
  };
  lenient.decode_view(cut, view_of, image);
  CHECK(lenient.warning() == "Premature end of JPEG file");
  CHECK(asked == 1);
  CHECK(image.width == 16);
  CHECK_THROWS_AS(lenient.decode(file.substr(0, 10), image), std::invalid_argument);
  CHECK_THROWS_AS(Decoder().decode(cut, image), std::invalid_argument);
  CHECK(decodes_leniently(cut, {}));
  CHECK(!decodes_leniently(file, {}));  // needs no patience
  CHECK(!decodes_leniently(file.substr(0, 10), {}));
}

TEST_CASE("the limit of pixels may be another") {
  Image image;
  for (const std::string& file : {encode_jpeg(noise(16, 16, 3)), encode_png(noise(16, 16, 3)),
                                  encode_png(noise(16, 16, 3), 8, true)}) {
    Decoder({.max_pixels = 256}).decode(file, image);
    CHECK_THROWS_WITH(Decoder({.max_pixels = 255}).decode(file, image),
                      "16 x 16 pixels are more than data.max_pixels allows, which is 255");
  }
}
