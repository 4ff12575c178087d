#include "app/data/near_hash.h"

namespace scaletrain::app {
namespace {

constexpr std::int64_t kColumns = 9, kRows = 8;

// ITU-R BT.601, in thousandths.
int luma(const std::uint8_t* rgb) { return 299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2]; }

}  // namespace

std::uint64_t difference_hash(const data::Image& image, data::Resizer& resizer,
                              data::Image& small) {
  resizer.resize(image, data::stretched(image.width, image.height, kColumns, kRows), small);
  std::uint64_t hash = 0;
  for (std::int64_t y = 0; y < kRows; ++y) {
    const std::uint8_t* const row = small.row(y);
    for (std::int64_t x = 0; x + 1 < kColumns; ++x) {
      hash = hash << 1 | (luma(row + 3 * x) < luma(row + 3 * (x + 1)) ? 1U : 0U);
    }
  }
  return hash;
}

}  // namespace scaletrain::app
