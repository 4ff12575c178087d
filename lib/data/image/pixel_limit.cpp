#include "lib/data/image/pixel_limit.h"

#include <fmt/format.h>

#include <stdexcept>

namespace scaletrain::data {

void check_pixels(std::int64_t width, std::int64_t height, std::int64_t most) {
  if (width * height > most) {
    throw std::invalid_argument(fmt::format(
        "{} x {} pixels are more than data.max_pixels allows, which is {}", width, height, most));
  }
}

}  // namespace scaletrain::data
