#include "lib/data/image/encode.h"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <stdexcept>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/data/image/jpeg_guard.h"
#include "lib/format/rgb8.h"

namespace scaletrain::data {
namespace {

constexpr std::int64_t kMcu = 16;    // pixels per side of an MCU, the coding unit of a 4:2:0 JPEG
constexpr int kRestartInterval = 4;  // in MCUs

}  // namespace

std::string to_jpeg(const Image& image, int quality) {
  const int width = static_cast<int>(image.width), height = static_cast<int>(image.height);
  // Space for restart markers: the markers, the padding before them, and larger DC differences
  // after them.
  const std::int64_t spare = (image.width / kMcu + 1) * (image.height / kMcu + 1) * kMcu;
  std::string file(tjBufSize(width, height, TJSAMP_420) + static_cast<std::size_t>(spare), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(file.data());
  unsigned long size = file.size();  // NOLINT(google-runtime-int): the library's
  JpegGuard guard;
  jpeg_compress_struct info = {};
  info.err = guard.errors();
  const bool is_written = guard.run([&] {
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &bytes, &size);
    info.image_width = static_cast<JDIMENSION>(width);
    info.image_height = static_cast<JDIMENSION>(height);
    info.input_components = static_cast<int>(kChannels);
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);  // baseline, 4:2:0
    jpeg_set_quality(&info, quality, TRUE);
    info.restart_interval = kRestartInterval;
    info.optimize_coding = TRUE;  // saves twice the bytes that the markers add
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
      auto* row = const_cast<JSAMPROW>(image.row(info.next_scanline));  // libjpeg only reads it
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
  });
  jpeg_destroy_compress(&info);
  if (!is_written) throw std::invalid_argument(guard.message());
  file.resize(size);
  return file;
}

std::string to_png(const Image& image) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string file(size, '\0');
  if (png_image_write_to_memory(&header, file.data(), &size, 0, image.pixels.data(), 0, nullptr) ==
      0) {
    throw std::invalid_argument(&header.message[0]);
  }
  file.resize(size);
  return file;
}

std::string to_rgb8(const Image& image) {
  std::string file = format::rgb8_header({image.width, image.height});
  file.append(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size());
  return file;
}

std::string Encoding::extension() const {
  switch (kind) {
    case Kind::kJpeg:
      return "jpg";
    case Kind::kPng:
      return "png";
    case Kind::kRaw:
      break;
  }
  return "rgb8";
}

Encoding parse_encoding(const std::string& text, const std::string& option) {
  if (text == "png") return {Encoding::Kind::kPng};
  if (text == "raw") return {Encoding::Kind::kRaw};
  if (text == "jpeg") return {};
  constexpr std::string_view kJpegPrefix = "jpeg:";
  Encoding result;
  if (text.starts_with(kJpegPrefix)) {
    result.quality = core::parse_number<int>(text.substr(kJpegPrefix.size())).value_or(0);
    if (result.quality >= 1 && result.quality <= 100) return result;
  }
  throw core::UsageError(option, fmt::format("\"{}\" is not an encoding", text),
                         "use one of: jpeg:1 to jpeg:100, png, raw");
}

std::string encode(const Image& image, const Encoding& encoding) {
  switch (encoding.kind) {
    case Encoding::Kind::kJpeg:
      return to_jpeg(image, encoding.quality);
    case Encoding::Kind::kPng:
      return to_png(image);
    case Encoding::Kind::kRaw:
      break;
  }
  return to_rgb8(image);
}

}  // namespace scaletrain::data
