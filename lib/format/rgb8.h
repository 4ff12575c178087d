// .rgb8: uncompressed pixels of one image (docs/reference/formats/rgb8.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace scaletrain::format {

inline constexpr std::string_view kRgb8Magic = "sctrgb8\n";
inline constexpr std::size_t kRgb8HeaderBytes = 16;

struct Rgb8Size {
  std::int64_t width = 0, height = 0;
};

// Returns the 16-byte header of [height, width, 3] pixels.
std::string rgb8_header(Rgb8Size size);

// Returns the image size of a complete file. Throws std::invalid_argument for another magic, no
// pixels, or a length that does not match the image size.
Rgb8Size parse_rgb8(std::string_view file);

}  // namespace scaletrain::format
