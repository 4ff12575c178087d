#include "lib/data/encode.h"

#include <fmt/format.h>
#include <png.h>
#include <turbojpeg.h>

#include <charconv>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>

#include "lib/core/error.h"
#include "lib/format/rgb8.h"

namespace scaletrain::data {

std::string to_jpeg(const Image& image, int quality) {
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitCompress(), tjDestroy);
  if (!handle) throw std::bad_alloc();
  const int width = static_cast<int>(image.width), height = static_cast<int>(image.height);
  std::string file(tjBufSize(width, height, TJSAMP_420), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(file.data());
  unsigned long size = file.size();  // NOLINT(google-runtime-int): the library's
  if (tjCompress2(handle.get(), image.pixels.data(), width, 0, height, TJPF_RGB, &bytes, &size,
                  TJSAMP_420, quality, TJFLAG_NOREALLOC | TJFLAG_ACCURATEDCT) != 0) {
    throw std::invalid_argument(tjGetErrorStr2(handle.get()));
  }
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
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + kJpegPrefix.size(), end, result.quality);
    if (parsed.ec == std::errc() && parsed.ptr == end && result.quality >= 1 &&
        result.quality <= 100) {
      return result;
    }
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
