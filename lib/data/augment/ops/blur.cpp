#include "lib/data/augment/ops/blur.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/data/image/clones.h"

namespace scaletrain::data {
namespace {

constexpr int kWeightBits = 14;  // fraction bits of a fixed-point weight
constexpr int kBetween = 6;      // fraction bits of a value between the two passes
constexpr std::int32_t kWhole = 1 << kWeightBits;

// Returns half of a symmetric kernel, from its centre; the full kernel sums to kWhole.
std::vector<std::int32_t> half_kernel(std::int64_t radius, double sigma) {
  std::vector<double> exact;
  double total = 0;
  for (std::int64_t i = 0; i <= radius; ++i) {
    const double place = static_cast<double>(i) / sigma;
    exact.push_back(std::exp(-0.5 * place * place));
    total += exact.back() * (i == 0 ? 1 : 2);
  }
  std::vector<std::int32_t> weights;
  std::int32_t rest = kWhole;
  for (const double weight : exact) {
    weights.push_back(static_cast<std::int32_t>(std::lround(weight / total * kWhole)));
    rest -= weights.back() * (weights.size() == 1 ? 1 : 2);
  }
  weights.front() += rest;
  return weights;
}

// out[i] = centre[i] * w0 + sum over k of w_k * (inputs at distance `stride` * k on both sides),
// with `shift` bits dropped. In and Out: bytes, or values between the two passes.
template <class In, class Out>
inline void blur_line(const In* middle, std::int64_t stride, const std::int32_t* weights,
                      std::int64_t radius, int shift, Out* out, std::int64_t count) {
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, count - begin);
    std::int32_t sums[kBlock];  // NOLINT(modernize-avoid-c-arrays): in registers
    const In* const in = middle + begin;
    for (std::int64_t i = 0; i < size; ++i) sums[i] = in[i] * weights[0] + (1 << (shift - 1));
    for (std::int64_t k = 1; k <= radius; ++k) {
      const In *const before = in - k * stride, *const behind = in + k * stride;
      for (std::int64_t i = 0; i < size; ++i) sums[i] += (before[i] + behind[i]) * weights[k];
    }
    for (std::int64_t i = 0; i < size; ++i) out[begin + i] = static_cast<Out>(sums[i] >> shift);
  }
}

SCALETRAIN_CLONES void blur_columns(const std::uint8_t* middle, std::int64_t stride,
                                    const std::int32_t* weights, std::int64_t radius,
                                    std::uint16_t* out, std::int64_t count) {
  blur_line(middle, stride, weights, radius, kWeightBits - kBetween, out, count);
}

SCALETRAIN_CLONES void blur_rows(const std::uint16_t* middle, std::int64_t stride,
                                 const std::int32_t* weights, std::int64_t radius,
                                 std::uint8_t* out, std::int64_t count) {
  blur_line(middle, stride, weights, radius, kWeightBits + kBetween, out, count);
}

// Mirrors index `i` into 0..size-1 at both ends, without repeating the edge.
std::int64_t mirrored(std::int64_t i, std::int64_t size) {
  if (i < 0) i = -i;
  return i < size ? i : 2 * (size - 1) - i;
}

}  // namespace

void gaussian_blur(std::int64_t kernel_size, double sigma, Image& image, Scratch& scratch) {
  const std::int64_t radius = std::min({kernel_size / 2, image.width - 1, image.height - 1});
  if (radius < 1) return;
  const std::vector<std::int32_t> weights = half_kernel(radius, sigma);
  // First pass down the columns, with mirrored rows above and below, into a row with room for
  // mirrored pixels at both ends; second pass along that row.
  const std::int64_t row_bytes = image.width * kChannels;
  const std::int64_t above = radius * row_bytes, room = radius * kChannels;
  scratch.bytes.resize(static_cast<std::size_t>(above * 2 + row_bytes * image.height));
  std::uint8_t* const tall = scratch.bytes.data();
  for (std::int64_t y = -radius; y < image.height + radius; ++y) {
    std::memcpy(tall + (y + radius) * row_bytes, image.row(mirrored(y, image.height)),
                static_cast<std::size_t>(row_bytes));
  }
  std::vector<std::uint16_t> wide(static_cast<std::size_t>(row_bytes + 2 * room));
  std::uint16_t* const middle = wide.data() + room;
  for (std::int64_t y = 0; y < image.height; ++y) {
    blur_columns(tall + above + y * row_bytes, row_bytes, weights.data(), radius, middle,
                 row_bytes);
    for (std::int64_t x = 1; x <= radius; ++x) {
      std::copy_n(middle + x * kChannels, kChannels, middle - x * kChannels);
      std::copy_n(middle + (image.width - 1 - x) * kChannels, kChannels,
                  middle + (image.width - 1 + x) * kChannels);
    }
    blur_rows(middle, kChannels, weights.data(), radius, image.row(y), row_bytes);
  }
}

}  // namespace scaletrain::data
