#include "lib/data/augment/ops/mirror.h"

#include <cstring>
#include <utility>

#include "lib/data/image/clones.h"

namespace scaletrain::data {
namespace {

using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
constexpr std::int64_t kPixelsAtOnce = 5;  // fit into 16 bytes

// Copies five pixels at a time from the left to the right. A store writes one byte too many, which
// the next store overwrites; near the edges pixels are copied one by one.
SCALETRAIN_CLONES void mirror_row(const std::uint8_t* in, std::uint8_t* out, std::int64_t width) {
  std::int64_t x = 0;
  for (; x + kPixelsAtOnce < width; x += kPixelsAtOnce) {
    Bytes16 bytes;
    std::memcpy(&bytes, in + x * kChannels, sizeof bytes);
    const Bytes16 turned =
        __builtin_shufflevector(bytes, bytes, 15, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
    std::memcpy(out + (width - x - kPixelsAtOnce) * kChannels - 1, &turned, sizeof turned);
  }
  for (; x < width; ++x) {
    std::memcpy(out + (width - 1 - x) * kChannels, in + x * kChannels, kChannels);
  }
}

}  // namespace

void mirror(Image& image, Scratch& scratch) {
  Image& out = scratch.image;
  out.reshape(image.width, image.height);
  for (std::int64_t y = 0; y < image.height; ++y) mirror_row(image.row(y), out.row(y), image.width);
  std::swap(image, out);
}

}  // namespace scaletrain::data
