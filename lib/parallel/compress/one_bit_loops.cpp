#include "lib/parallel/compress/one_bit_loops.h"

#include <algorithm>
#include <array>
#include <bit>

namespace scaletrain::parallel {
namespace {

constexpr std::size_t kBits = 8, kCodes = kOneBitBlock / kBits;

}  // namespace

void encode_one_bit(std::span<const float> values, std::span<const float> padding,
                    std::span<float> high_means, std::span<float> low_means,
                    std::span<std::uint8_t> codes) {
  constexpr std::size_t kLanes = 16;  // partial sums, which the compiler vectorizes
  for (std::size_t i = 0; i < padding.size(); ++i) {
    const float* const block = values.data() + i * kOneBitBlock;
    std::array<float, kLanes> high{}, low{};
    std::array<std::int32_t, kLanes> count{};
    for (std::size_t first = 0; first < kOneBitBlock; first += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const float value = block[first + lane];
        const bool is_high = value >= 0;
        high[lane] += is_high ? value : 0.0F;
        low[lane] += is_high ? 0.0F : value;
        count[lane] += is_high ? 1 : 0;
      }
    }
    float high_sum = 0, low_sum = 0, highs = 0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      high_sum += high[lane];
      low_sum += low[lane];
      highs += static_cast<float>(count[lane]);
    }
    high_means[i] = high_sum / std::max(highs - padding[i], 1.0F);
    low_means[i] = low_sum / std::max(static_cast<float>(kOneBitBlock) - highs, 1.0F);
    for (std::size_t code = 0; code < kCodes; ++code) {
      unsigned bits = 0;
      for (std::size_t bit = 0; bit < kBits; ++bit) {
        bits |= static_cast<unsigned>(block[code * kBits + bit] >= 0) << bit;
      }
      codes[i * kCodes + code] = static_cast<std::uint8_t>(bits);
    }
  }
}

void decode_one_bit(std::span<const float> high_means, std::span<const float> low_means,
                    std::span<const std::uint8_t> codes, std::span<float> values) {
  for (std::size_t i = 0; i < high_means.size(); ++i) {
    // Selects one of two values without a branch; exact for any bits, also NaN.
    const auto low = std::bit_cast<std::uint32_t>(low_means[i]);
    const std::uint32_t differing = low ^ std::bit_cast<std::uint32_t>(high_means[i]);
    float* const block = values.data() + i * kOneBitBlock;
    for (std::size_t code = 0; code < kCodes; ++code) {
      const std::uint32_t bits = codes[i * kCodes + code];
      for (std::size_t bit = 0; bit < kBits; ++bit) {
        block[code * kBits + bit] =
            std::bit_cast<float>(low ^ (differing & (0U - (bits >> bit & 1U))));
      }
    }
  }
}

}  // namespace scaletrain::parallel
