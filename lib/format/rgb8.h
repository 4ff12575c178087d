// .rgb8: the pixels of one image, not compressed (docs/reference/formats/rgb8.md).
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

// The 16 bytes that stand before [height, width, 3] pixels.
std::string rgb8_header(Rgb8Size size);

// The size of the whole file `file`. Throws std::invalid_argument saying what is wrong with it:
// another magic, no pixels, more or fewer bytes than its size says.
Rgb8Size parse_rgb8(std::string_view file);

}  // namespace scaletrain::format
