// Any bytes as a JPEG: taken or refused as libjpeg alone does, warnings being failures, with the
// same pixels; and a part of a sound picture is that part of the whole. The first byte chooses the
// part.
#include <turbojpeg.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "lib/data/image/jpeg.h"
#include "lib/data/image/jpeg_guard.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kMostPixels = 1 << 14;  // or a run has few pictures

struct Decoded {
  Image image;
  std::string error;
  bool is_foreign = false;  // of a kind that is not compared
};

Decoded by_libjpeg(std::string_view file) {
  Decoded decoded;
  JpegGuard guard;
  jpeg_decompress_struct info = {};
  info.err = guard.errors();
  const bool is_sound = guard.run([&] {
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info, TRUE);
    decoded.is_foreign =
        info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK ||
        std::int64_t{info.image_width} * std::int64_t{info.image_height} > kMostPixels;
    if (decoded.is_foreign) return;
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    decoded.image.reshape(info.output_width, info.output_height);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = decoded.image.row(info.output_scanline);
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  });
  jpeg_destroy_decompress(&info);
  if (!is_sound) decoded.error = guard.message();
  return decoded;
}

Decoded by_us(Jpeg& jpeg, std::string_view file) {
  Decoded decoded;
  try {
    jpeg.open(file);
    jpeg.decode(decoded.image);
  } catch (const std::invalid_argument& error) {
    decoded.error = error.what();
  }
  return decoded;
}

void compare_part(Jpeg& jpeg, std::string_view file, const Image& whole, unsigned choice) {
  const std::int64_t left = whole.width * (choice % 4) / 4,
                     top = whole.height * (choice / 4 % 4) / 4;
  const Box box{{left, (whole.width - left + 1) / 2}, {top, (whole.height - top + 1) / 2}};
  Image part;
  jpeg.open(file);
  const Jpeg::Corner corner = jpeg.decode_part(box, 1, part);
  for (std::int64_t y = 0; y < box.y.size; ++y) {
    const std::uint8_t* const expected = whole.row(box.y.begin + y) + box.x.begin * kChannels;
    const std::uint8_t* const found =
        part.row(box.y.begin - corner.top + y) + (box.x.begin - corner.left) * kChannels;
    if (!std::equal(found, found + box.x.size * kChannels, expected)) {
      fuzz_failed("a part is not that of the whole");
    }
  }
}

std::string seed(int width, int height, int quality, int subsampling, int restart = 0,
                 int flags = 0) {
  std::string pixels;
  for (int i = 0; i < width * height * 3; ++i) {
    pixels += static_cast<char>(i / 3 % width * 5 + i * i % 23);
  }
  ::setenv("TJ_RESTART", (std::to_string(restart) + "B").c_str(), 1);  // TurboJPEG has no other way
  std::string file(tjBufSize(width, height, subsampling), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(file.data());
  unsigned long size = file.size();  // NOLINT(google-runtime-int): the library's
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
  if (tjCompress2(handle.get(), reinterpret_cast<const unsigned char*>(pixels.data()), width, 0,
                  height, TJPF_RGB, &bytes, &size, subsampling, quality,
                  TJFLAG_NOREALLOC | flags) != 0) {
    fuzz_failed(tjGetErrorStr2(handle.get()));
  }
  file.resize(size);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Decoded expected = by_libjpeg(file);
  if (expected.is_foreign) return 0;
  Jpeg jpeg;
  const Decoded found = by_us(jpeg, file);
  if (found.error != expected.error) {
    fuzz_failed("\"" + found.error + "\", and libjpeg alone says \"" + expected.error + "\"");
  }
  if (!found.error.empty()) return 0;
  if (found.image.pixels != expected.image.pixels) fuzz_failed("other pixels than libjpeg's");
  compare_part(jpeg, file, found.image, data[0]);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> files;
  for (const int subsampling : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_411}) {
    for (const int restart : {0, 1, 3}) {
      files.push_back(seed(37, 29, 75, subsampling, restart));
    }
  }
  files.push_back(seed(24, 17, 100, TJSAMP_420));
  files.push_back(seed(40, 33, 5, TJSAMP_420));
  files.push_back(seed(20, 20, 90, TJSAMP_420, 0, TJFLAG_PROGRESSIVE));
  std::vector<std::string> seeds;
  seeds.reserve(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    seeds.push_back(static_cast<char>(i * 7) + files[i]);
  }
  return seeds;
}
