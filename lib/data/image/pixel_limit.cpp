#include "lib/data/image/pixel_limit.h"

#include <fmt/format.h>

#include <stdexcept>

namespace scaletrain::data {

void check_pixels(std::int64_t width, std::int64_t height) {
  if (width * height > kMaxPixels) {
    throw std::invalid_argument(
        fmt::format("{} x {} pixels are more than {} in all", width, height, kMaxPixels));
  }
}

}  // namespace scaletrain::data
