#include "lib/data/image/jpeg.h"

#include <doctest/doctest.h>
#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <random>
#include <stdexcept>

#include "tests/data/image_support.h"

// How far a shrunk view is from the whole one resized is in tests/data/view_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

Pixels scene(std::int64_t width, std::int64_t height, std::int64_t channels = 3) {
  Pixels pixels{width, height, channels};
  for (std::int64_t i = 0; i < width * height * channels; ++i) {
    pixels.values.push_back(
        static_cast<std::uint8_t>(i / channels % width * 3 + i / width * 5 % 64 + i * i % 19));
  }
  return pixels;
}

// The box of a whole picture.
std::vector<std::uint8_t> cut(const Image& image, const Box& box) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = box.y.begin; y < box.y.begin + box.y.size; ++y) {
    const std::uint8_t* const first = image.row(y) + box.x.begin * kChannels;
    pixels.insert(pixels.end(), first, first + box.x.size * kChannels);
  }
  return pixels;
}

std::vector<std::uint8_t> cut_part(Jpeg& jpeg, const std::string& file, const Box& box,
                                   std::int64_t shrink = 1) {
  jpeg.open(file);
  Image part;
  const Jpeg::Corner corner = jpeg.decode_part(box, shrink, part);
  return cut(part,
             {{box.x.begin - corner.left, box.x.size}, {box.y.begin - corner.top, box.y.size}});
}

// TurboJPEG's pixels, or its first error or warning.
struct Reference {
  Image image;
  std::string error;
};

Reference by_turbojpeg(const std::string& file, std::int64_t width, std::int64_t height) {
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitDecompress(), tjDestroy);
  Reference result;
  result.image.reshape(width, height);
  if (tjDecompress2(handle.get(), reinterpret_cast<const unsigned char*>(file.data()), file.size(),
                    result.image.pixels.data(), static_cast<int>(width), 0,
                    static_cast<int>(height), TJPF_RGB, TJFLAG_STOPONWARNING) != 0) {
    result.error = tjGetErrorStr2(handle.get());
  }
  return result;
}

}  // namespace

TEST_CASE("pictures of every quality are decoded as TurboJPEG decodes them") {
  Jpeg jpeg;
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same pictures every time
  for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411}) {
    for (const int quality : {1, 10, 50, 75, 90, 100}) {
      for (const int noise : {1, 20, 256}) {
        Pixels pixels = scene(77, 51);
        for (std::uint8_t& value : pixels.values) {
          value = static_cast<std::uint8_t>(value + random() % static_cast<unsigned>(noise));
        }
        const std::string file = encode_jpeg(pixels, quality, subsampling);
        jpeg.open(file);
        Image image;
        jpeg.decode(image);
        CAPTURE(subsampling);
        CAPTURE(quality);
        CAPTURE(noise);
        CHECK(image.pixels == by_turbojpeg(file, 77, 51).image.pixels);
      }
    }
  }
}

TEST_CASE("damaged pictures give the pixels or the message that TurboJPEG gives") {
  Jpeg jpeg;
  const std::vector<std::string> sounds{
      encode_jpeg(scene(120, 90), 90, TJSAMP_420),
      encode_jpeg(scene(120, 90), 90, TJSAMP_420, false, 3)};  // 48 MCUs, 15 restart markers
  std::mt19937 random(6);                                      // NOLINT(cert-msc51-cpp)
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string& sound = sounds[static_cast<std::size_t>(i % 2)];
    const std::size_t scan = sound.find("\xff\xda") + 14;  // behind its header
    std::string file = sound;
    for (int change = 0; change < 1 + i % 3; ++change) {
      file[scan + random() % (file.size() - scan)] = static_cast<char>(random());
    }
    if (i % 5 == 0) file.insert(scan + random() % (file.size() - scan), 1 + i % 12, 'x');
    const Reference expected = by_turbojpeg(file, 120, 90);
    std::string error;
    Image image;
    try {
      jpeg.open(file);
      jpeg.decode(image);
    } catch (const std::invalid_argument& refusal) {
      error = refusal.what();
    }
    CAPTURE(i);
    CHECK(error == expected.error);
    if (error.empty()) CHECK(image.pixels == expected.image.pixels);
    refused += error.empty() ? 0 : 1;
  }
  CHECK(refused > 100);
  CHECK(refused < 1400);
}

TEST_CASE("a part is the same as that part of the whole, at every subsampling, in every corner") {
  Jpeg jpeg;
  const std::int64_t width = 93, height = 71;
  struct Kind {
    bool progressive = false;
    int restart = 0;
  };
  for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY}) {
    for (const Kind& kind :
         {Kind{}, Kind{true}, Kind{false, 1}, Kind{false, 4}, Kind{false, 500}}) {
      const std::string file =
          encode_jpeg(scene(width, height), 90, subsampling, kind.progressive, kind.restart);
      Image whole;
      jpeg.open(file);
      CHECK(jpeg.width() == width);
      CHECK(jpeg.height() == height);
      jpeg.decode(whole);
      for (const std::int64_t left : {0, 1, 15, 16, 17, 40, 76}) {
        for (const std::int64_t top : {0, 7, 16, 33, 54}) {
          const Box box{{left, 17}, {top, 17}};
          CAPTURE(subsampling);
          CAPTURE(kind.progressive);
          CAPTURE(kind.restart);
          CAPTURE(left);
          CAPTURE(top);
          CHECK(cut_part(jpeg, file, box) == cut(whole, box));
        }
      }
    }
  }
}

TEST_CASE("what restart markers set apart from a part is not read") {
  Jpeg jpeg;
  const std::string sound = encode_jpeg(scene(64, 64), 90, TJSAMP_420, false, 4);  // a row of MCUs
  Image whole;
  jpeg.open(sound);
  jpeg.decode(whole);
  std::string damaged = sound;
  const std::size_t scan = sound.find("\xff\xda") + 14, second = sound.find("\xff\xd0") + 2;
  std::fill(damaged.begin() + static_cast<std::ptrdiff_t>(scan),
            damaged.begin() + static_cast<std::ptrdiff_t>(second) - 2, '\x7f');  // all of a row
  const Box below{{0, 64}, {40, 24}};
  CHECK(cut_part(jpeg, damaged, below) == cut(whole, below));
  CHECK_THROWS_AS(cut_part(jpeg, damaged, {{0, 64}, {0, 64}}), std::invalid_argument);
  // Markers that are missing, or in another order, leave libjpeg to say so.
  std::string swapped = sound;
  swapped[second - 1] = '\xd1';
  CHECK_THROWS_AS(cut_part(jpeg, swapped, below), std::invalid_argument);
  CHECK(cut_part(jpeg, sound, below) == cut(whole, below));
}

TEST_CASE("a part of a CMYK picture is the same as that part of the whole") {
  Jpeg jpeg;
  const std::string file = encode_jpeg(scene(40, 30, 4));
  Image whole;
  jpeg.open(file);
  jpeg.decode(whole);
  const Box box{{9, 22}, {8, 21}};
  CHECK(cut_part(jpeg, file, box) == cut(whole, box));
}

TEST_CASE("a picture is shrunk by 2, 4 and 8") {
  Jpeg jpeg;
  const std::string file = encode_jpeg({80, 50, 1, std::vector<std::uint8_t>(4000, 90)});
  for (const std::int64_t shrink : {2, 4, 8}) {
    jpeg.open(file);
    Image image;
    const Box all{{0, (80 + shrink - 1) / shrink}, {0, (50 + shrink - 1) / shrink}};
    jpeg.decode_part(all, shrink, image);
    CHECK(image.width == all.x.size);
    CHECK(image.height == all.y.size);
    CHECK(image.pixels.back() == 90);
  }
}

TEST_CASE("a truncated file fails, whether the end is missing in the part or below it") {
  Jpeg jpeg;
  for (const bool progressive : {false, true}) {
    const std::string file = encode_jpeg(scene(64, 64), 90, TJSAMP_420, progressive);
    const Box top{{0, 64}, {0, 8}};
    CHECK_NOTHROW(cut_part(jpeg, file, top));
    for (const std::size_t bytes : {file.size() * 2 / 3, file.size() - 2, file.size() - 1}) {
      const std::string part = file.substr(0, bytes);
      CHECK_THROWS_WITH_AS(cut_part(jpeg, part, top), "Premature end of JPEG file",
                           std::invalid_argument);
      CHECK_THROWS_WITH_AS(cut_part(jpeg, part, {{0, 64}, {0, 64}}), "Premature end of JPEG file",
                           std::invalid_argument);
    }
    CHECK_NOTHROW(cut_part(jpeg, file + "bytes behind the end", top));
    CHECK_NOTHROW(cut_part(jpeg, file, top));
  }
}
