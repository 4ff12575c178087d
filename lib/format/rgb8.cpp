#include "lib/format/rgb8.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <stdexcept>

namespace scaletrain::format {
namespace {

static_assert(std::endian::native == std::endian::little, "the header is little-endian");

std::int64_t number_at(std::string_view file, std::size_t offset) {
  std::uint32_t number = 0;
  std::memcpy(&number, file.data() + offset, sizeof number);
  return number;
}

}  // namespace

std::string rgb8_header(Rgb8Size size) {
  const auto width = static_cast<std::uint32_t>(size.width);
  const auto height = static_cast<std::uint32_t>(size.height);
  std::string header(kRgb8HeaderBytes, '\0');
  std::memcpy(header.data(), kRgb8Magic.data(), kRgb8Magic.size());
  std::memcpy(header.data() + 8, &width, sizeof width);
  std::memcpy(header.data() + 12, &height, sizeof height);
  return header;
}

Rgb8Size parse_rgb8(std::string_view file) {
  if (file.size() < kRgb8HeaderBytes || !file.starts_with(kRgb8Magic)) {
    throw std::invalid_argument("its first bytes are not an rgb8 header");
  }
  const Rgb8Size size{number_at(file, 8), number_at(file, 12)};
  // Each below 2^32: the product of both and 3 could pass 2^64, so it is not formed.
  const auto pixels = static_cast<std::int64_t>(file.size() - kRgb8HeaderBytes);
  const bool fits = size.width > 0 && size.height > 0 && pixels % 3 == 0 &&
                    pixels / 3 % size.width == 0 && pixels / 3 / size.width == size.height;
  if (!fits) {
    throw std::invalid_argument(
        fmt::format("{} bytes of pixels are not {} x {} x 3", pixels, size.height, size.width));
  }
  return size;
}

}  // namespace scaletrain::format
