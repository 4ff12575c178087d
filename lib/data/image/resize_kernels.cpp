#include "lib/data/image/resize_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/data/image/image.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace scaletrain::data {
namespace {

constexpr int kPrecision = ResizeAxis::kPrecision;
constexpr int kLowerBits = 11;
constexpr std::int32_t kHalf = 1 << (kPrecision - 1);

std::uint8_t to_pixel(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

void plain_row(const RowWeights& weights, const std::uint8_t* in, std::uint8_t* out) {
  const RowWeights::Group* group = weights.groups.data();
  for (const std::int32_t first : weights.first) {
    std::array<std::int32_t, kChannels> sums{kHalf, kHalf, kHalf};
    const std::uint8_t* pixel = in + first;
    for (std::int64_t i = 0; i < weights.per_pixel; ++i, ++group) {
      for (const int t : {0, 1, 8, 9}) {
        const std::int32_t weight = group->upper[t] * (1 << kLowerBits) + group->lower[t];
        for (std::size_t c = 0; c < kChannels; ++c) sums[c] += weight * pixel[c];
        pixel += kChannels;
      }
    }
    for (const std::int32_t sum : sums) *out++ = to_pixel(sum);
  }
}

void plain_rows(const RowWeights& weights, const std::uint8_t* in, const std::uint8_t* in2,
                std::uint8_t* out, std::uint8_t* out2) {
  plain_row(weights, in, out);
  plain_row(weights, in2, out2);
}

void plain_columns(const ColumnWeights::Pair* pairs, std::int64_t count, const std::uint8_t* in,
                   std::int64_t stride, std::uint8_t* out, std::int64_t bytes) {
  constexpr std::int64_t kBlock = 64;
  std::array<std::int32_t, kBlock> sums{};
  for (std::int64_t begin = 0; begin < bytes; begin += kBlock) {
    const auto size = static_cast<std::size_t>(std::min(kBlock, bytes - begin));
    sums.fill(kHalf);
    for (std::int64_t t = 0; t < count; ++t) {
      const std::uint8_t* const from = in + t * stride + begin;
      const ColumnWeights::Pair& pair = pairs[t / 2];
      const std::int32_t weight = pair.upper[t % 2] * (1 << kLowerBits) + pair.lower[t % 2];
      for (std::size_t i = 0; i < size; ++i) sums[i] += weight * from[i];
    }
    for (std::size_t i = 0; i < size; ++i)
      out[begin + static_cast<std::int64_t>(i)] = to_pixel(sums[i]);
  }
}

#ifdef __x86_64__

__attribute__((target("avx2"))) inline __m128i at128(const void* memory) {
  return _mm_loadu_si128(static_cast<const __m128i*>(memory));
}

__attribute__((target("avx2"))) inline __m256i at256(const void* memory) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(memory));
}

__attribute__((target("avx2"))) inline __m256i twice(const std::int16_t* eight) {
  return _mm256_broadcastsi128_si256(at128(eight));
}

__attribute__((target("avx2"))) inline __m256i whole(__m256i upper, __m256i lower) {
  const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(upper, kLowerBits), lower);
  return _mm256_srai_epi32(sum, kPrecision);
}

// Computes a pixel of two rows: 32 bits of red, green, blue and an unused value in each half.
// `kTaps`: maximum number of source pixels; 0: as many as `groups` have.
template <int kTaps>
__attribute__((target("avx2"))) inline __m256i weigh(const RowWeights::Group* group,
                                                     std::int64_t groups, const std::uint8_t* in,
                                                     const std::uint8_t* in2) {
  // Shuffles bytes to 16-bit pairs r0 r1 g0 g1 b0 b1 - - and r2 r3 g2 g3 b2 b3 - -; -1 makes 0.
  const __m256i first_pair = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
  const __m256i second_pair = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
  __m256i upper = _mm256_setzero_si256(), lower = _mm256_set1_epi32(kHalf);
  for (std::int64_t i = 0; i < (kTaps == 0 ? groups : 1); ++i, ++group) {
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(at128(in)), at128(in2), 1);
    const __m256i values = _mm256_shuffle_epi8(bytes, first_pair);
    upper = _mm256_add_epi32(upper, _mm256_madd_epi16(values, twice(&group->upper[0])));
    lower = _mm256_add_epi32(lower, _mm256_madd_epi16(values, twice(&group->lower[0])));
    if constexpr (kTaps != 2) {
      const __m256i more = _mm256_shuffle_epi8(bytes, second_pair);
      upper = _mm256_add_epi32(upper, _mm256_madd_epi16(more, twice(&group->upper[8])));
      lower = _mm256_add_epi32(lower, _mm256_madd_epi16(more, twice(&group->lower[8])));
    }
    in += RowWeights::kPixels * kChannels;
    in2 += RowWeights::kPixels * kChannels;
  }
  return whole(upper, lower);
}

template <int kTaps>
__attribute__((target("avx2"))) inline void weigh_rows(const RowWeights& weights,
                                                       const std::uint8_t* in,
                                                       const std::uint8_t* in2, std::uint8_t* out,
                                                       std::uint8_t* out2) {
  // Packs 16-bit r g b - r g b - to bytes without gaps.
  const __m256i close = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const std::int64_t groups = kTaps == 0 ? weights.per_pixel : 1;
  const RowWeights::Group* group = weights.groups.data();
  const auto pixels = std::ssize(weights.first);
  const std::int32_t* const first = weights.first.data();
  for (std::int64_t x = 0; x < pixels; x += 2, group += 2 * groups) {
    const bool is_last = x + 1 == pixels;  // the last one, without a partner
    const std::int64_t next = is_last ? 0 : 1;
    const __m256i one = weigh<kTaps>(group, groups, in + first[x], in2 + first[x]);
    const __m256i other =
        weigh<kTaps>(group + next * groups, groups, in + first[x + next], in2 + first[x + next]);
    const __m256i words = _mm256_packs_epi32(one, other);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_packus_epi16(words, words), close);
    const std::int64_t row = _mm_cvtsi128_si64(_mm256_castsi256_si128(bytes));
    const std::int64_t row2 = _mm_cvtsi128_si64(_mm256_extracti128_si256(bytes, 1));
    if (is_last) {
      std::memcpy(out, &row, kChannels);
      std::memcpy(out2, &row2, kChannels);
      return;
    }
    std::memcpy(out, &row, sizeof row);
    std::memcpy(out2, &row2, sizeof row2);
    out += 2 * kChannels;
    out2 += 2 * kChannels;
  }
}

__attribute__((target("avx2"))) void avx2_rows(const RowWeights& weights, const std::uint8_t* in,
                                               const std::uint8_t* in2, std::uint8_t* out,
                                               std::uint8_t* out2) {
  if (weights.most_taps <= 2) {
    weigh_rows<2>(weights, in, in2, out, out2);
  } else if (weights.most_taps <= RowWeights::kPixels) {
    weigh_rows<RowWeights::kPixels>(weights, in, in2, out, out2);
  } else {
    weigh_rows<0>(weights, in, in2, out, out2);
  }
}

__attribute__((target("avx2"))) inline __m256i pair_of(const std::int16_t* weights) {
  std::int32_t both = 0;
  std::memcpy(&both, weights, sizeof both);
  return _mm256_set1_epi32(both);
}

__attribute__((target("avx2"))) void avx2_columns(const ColumnWeights::Pair* pairs,
                                                  std::int64_t count, const std::uint8_t* in,
                                                  std::int64_t stride, std::uint8_t* out,
                                                  std::int64_t bytes) {
  constexpr std::int64_t kBlock = 32;
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(kHalf);
  for (std::int64_t i = 0; i < bytes; i += kBlock) {
    __m256i upper0 = zero, upper1 = zero, upper2 = zero, upper3 = zero;
    __m256i lower0 = half, lower1 = half, lower2 = half, lower3 = half;
    const std::uint8_t* from = in + i;
    for (std::int64_t t = 0; t < count; t += 2, from += 2 * stride) {
      const __m256i row = at256(from);
      // An odd last row has the weight 0.
      const __m256i next = at256(t + 1 < count ? from + stride : from);
      // 16-bit pairs of the bytes of two rows, four bytes of each half at a time.
      const __m256i low = _mm256_unpacklo_epi8(row, next), high = _mm256_unpackhi_epi8(row, next);
      const __m256i values0 = _mm256_unpacklo_epi8(low, zero);
      const __m256i values1 = _mm256_unpackhi_epi8(low, zero);
      const __m256i values2 = _mm256_unpacklo_epi8(high, zero);
      const __m256i values3 = _mm256_unpackhi_epi8(high, zero);
      const __m256i upper = pair_of(&pairs[t / 2].upper[0]);
      upper0 = _mm256_add_epi32(upper0, _mm256_madd_epi16(values0, upper));
      upper1 = _mm256_add_epi32(upper1, _mm256_madd_epi16(values1, upper));
      upper2 = _mm256_add_epi32(upper2, _mm256_madd_epi16(values2, upper));
      upper3 = _mm256_add_epi32(upper3, _mm256_madd_epi16(values3, upper));
      const __m256i lower = pair_of(&pairs[t / 2].lower[0]);
      lower0 = _mm256_add_epi32(lower0, _mm256_madd_epi16(values0, lower));
      lower1 = _mm256_add_epi32(lower1, _mm256_madd_epi16(values1, lower));
      lower2 = _mm256_add_epi32(lower2, _mm256_madd_epi16(values2, lower));
      lower3 = _mm256_add_epi32(lower3, _mm256_madd_epi16(values3, lower));
    }
    const __m256i low = _mm256_packs_epi32(whole(upper0, lower0), whole(upper1, lower1));
    const __m256i high = _mm256_packs_epi32(whole(upper2, lower2), whole(upper3, lower3));
    const __m256i result = _mm256_packus_epi16(low, high);
    if (bytes - i >= kBlock) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), result);
    } else {
      std::memcpy(out + i, &result, static_cast<std::size_t>(bytes - i));
    }
  }
}

#endif

// Upper and lower part of a weight.
std::int16_t upper_of(std::int32_t weight) {
  return static_cast<std::int16_t>(weight >> kLowerBits);
}
std::int16_t lower_of(std::int32_t weight) {
  return static_cast<std::int16_t>(weight & ((1 << kLowerBits) - 1));
}

}  // namespace

void RowWeights::prepare(const ResizeAxis& axis) {
  most_taps = axis.most_taps();
  per_pixel = (most_taps + kPixels - 1) / kPixels;
  groups.assign(static_cast<std::size_t>(axis.size() * per_pixel), Group{});
  first.resize(static_cast<std::size_t>(axis.size()));
  const std::int64_t origin = axis.needed().begin;
  for (std::int64_t x = 0; x < axis.size(); ++x) {
    const ResizeAxis::Taps taps = axis.at(x);
    first[static_cast<std::size_t>(x)] =
        static_cast<std::int32_t>((taps.first - origin) * kChannels);
    for (std::int64_t t = 0; t < taps.count; ++t) {
      Group& group = groups[static_cast<std::size_t>(x * per_pixel + t / kPixels)];
      // Pairs of pixels are side by side, once for each channel.
      const std::int64_t place = t % kPixels / 2 * 8 + t % 2;
      for (std::int64_t c = 0; c < 4; ++c) {
        group.upper[place + 2 * c] = upper_of(taps.weights[t]);
        group.lower[place + 2 * c] = lower_of(taps.weights[t]);
      }
    }
  }
  constexpr std::int64_t kLoad = 16;
  reach = first.back() + (per_pixel - 1) * kPixels * kChannels + kLoad;
}

void ColumnWeights::prepare(const ResizeAxis& axis) {
  per_row = (axis.most_taps() + 1) / 2;
  pairs.assign(static_cast<std::size_t>(axis.size() * per_row), Pair{});
  for (std::int64_t y = 0; y < axis.size(); ++y) {
    const ResizeAxis::Taps taps = axis.at(y);
    for (std::int64_t t = 0; t < taps.count; ++t) {
      Pair& pair = pairs[static_cast<std::size_t>(y * per_row + t / 2)];
      pair.upper[t % 2] = upper_of(taps.weights[t]);
      pair.lower[t % 2] = lower_of(taps.weights[t]);
    }
  }
}

const ResizeKernels& plain_kernels() {
  static constexpr ResizeKernels kPlain{plain_rows, plain_columns};
  return kPlain;
}

const ResizeKernels& best_kernels() {
#ifdef __x86_64__
  static constexpr ResizeKernels kAvx2{avx2_rows, avx2_columns};
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return kAvx2;
#endif
  return plain_kernels();
}

}  // namespace scaletrain::data
