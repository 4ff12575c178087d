#include "lib/data/resize_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/data/image.h"

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

void plain_columns(const ResizeAxis::Taps& taps, const std::uint8_t* in, std::int64_t stride,
                   std::uint8_t* out, std::int64_t bytes) {
  constexpr std::int64_t kBlock = 64;
  std::array<std::int32_t, kBlock> sums{};
  for (std::int64_t begin = 0; begin < bytes; begin += kBlock) {
    const auto size = static_cast<std::size_t>(std::min(kBlock, bytes - begin));
    sums.fill(kHalf);
    for (std::int64_t t = 0; t < taps.count; ++t) {
      const std::uint8_t* const from = in + t * stride + begin;
      for (std::size_t i = 0; i < size; ++i) sums[i] += taps.weights[t] * from[i];
    }
    for (std::size_t i = 0; i < size; ++i)
      out[begin + static_cast<std::int64_t>(i)] = to_pixel(sums[i]);
  }
}

#ifdef __x86_64__

__attribute__((target("avx2"))) inline __m256i at256(const void* memory) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(memory));
}

// Sums of red, green, blue and nothing of four pixels at a time, the first two in the lower half.
__attribute__((target("avx2"))) inline __m256i weigh(const RowWeights::Group* group,
                                                     std::int64_t groups,
                                                     const std::uint8_t* pixel) {
  // Bytes to 16-bit pairs r0 r1 g0 g1 b0 b1 - - and r2 r3 g2 g3 b2 b3 - -; -1 makes 0.
  const __m256i pairs =
      _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7,
                       -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  __m256i upper = _mm256_setzero_si256(), lower = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < groups; ++i, ++group, pixel += RowWeights::kPixels * kChannels) {
    const __m256i bytes =
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel)));
    const __m256i values = _mm256_shuffle_epi8(bytes, pairs);
    upper = _mm256_add_epi32(upper, _mm256_madd_epi16(values, at256(&group->upper[0])));
    lower = _mm256_add_epi32(lower, _mm256_madd_epi16(values, at256(&group->lower[0])));
  }
  return _mm256_add_epi32(_mm256_slli_epi32(upper, kLowerBits), lower);
}

__attribute__((target("avx2"))) void avx2_rows(const RowWeights& weights, const std::uint8_t* in,
                                               const std::uint8_t* in2, std::uint8_t* out,
                                               std::uint8_t* out2) {
  const RowWeights::Group* group = weights.groups.data();
  const __m256i half = _mm256_set1_epi32(kHalf);
  const std::int64_t groups = weights.per_pixel;
  for (const std::int32_t first : weights.first) {
    const __m256i one = weigh(group, groups, in + first);
    const __m256i other = weigh(group, groups, in2 + first);
    group += groups;
    // The halves of each added up, side by side.
    __m256i sums = _mm256_add_epi32(_mm256_permute2x128_si256(one, other, 0x20),
                                    _mm256_permute2x128_si256(one, other, 0x31));
    sums = _mm256_srai_epi32(_mm256_add_epi32(sums, half), kPrecision);
    sums = _mm256_packs_epi32(sums, sums);
    sums = _mm256_packus_epi16(sums, sums);
    const int pixel = _mm256_cvtsi256_si32(sums);
    const int pixel2 = _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
    std::memcpy(out, &pixel, sizeof pixel);
    std::memcpy(out2, &pixel2, sizeof pixel2);
    out += kChannels;
    out2 += kChannels;
  }
}

__attribute__((target("avx2"))) inline __m256i widen(const std::uint8_t* eight) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(eight)));
}

__attribute__((target("avx2"))) void avx2_columns(const ResizeAxis::Taps& taps,
                                                  const std::uint8_t* in, std::int64_t stride,
                                                  std::uint8_t* out, std::int64_t bytes) {
  constexpr std::int64_t kBlock = 32;
  const __m256i half = _mm256_set1_epi32(kHalf);
  // packs and packus work in halves: their quarters are put back in order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (std::int64_t i = 0; i < bytes; i += kBlock) {
    __m256i a = half, b = half, c = half, d = half;
    const std::uint8_t* from = in + i;
    for (std::int64_t t = 0; t < taps.count; ++t, from += stride) {
      const __m256i weight = _mm256_set1_epi32(taps.weights[t]);
      a = _mm256_add_epi32(a, _mm256_mullo_epi32(widen(from), weight));
      b = _mm256_add_epi32(b, _mm256_mullo_epi32(widen(from + 8), weight));
      c = _mm256_add_epi32(c, _mm256_mullo_epi32(widen(from + 16), weight));
      d = _mm256_add_epi32(d, _mm256_mullo_epi32(widen(from + 24), weight));
    }
    const __m256i low =
        _mm256_packs_epi32(_mm256_srai_epi32(a, kPrecision), _mm256_srai_epi32(b, kPrecision));
    const __m256i high =
        _mm256_packs_epi32(_mm256_srai_epi32(c, kPrecision), _mm256_srai_epi32(d, kPrecision));
    const __m256i result = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
    if (bytes - i >= kBlock) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), result);
    } else {
      std::memcpy(out + i, &result, static_cast<std::size_t>(bytes - i));
    }
  }
}

#endif

}  // namespace

void RowWeights::prepare(const ResizeAxis& axis) {
  std::int64_t most = 0;
  for (std::int64_t x = 0; x < axis.size(); ++x) most = std::max(most, axis.at(x).count);
  per_pixel = (most + kPixels - 1) / kPixels;
  groups.assign(static_cast<std::size_t>(axis.size() * per_pixel), Group{});
  first.resize(static_cast<std::size_t>(axis.size()));
  const std::int64_t origin = axis.needed().begin;
  for (std::int64_t x = 0; x < axis.size(); ++x) {
    const ResizeAxis::Taps taps = axis.at(x);
    first[static_cast<std::size_t>(x)] =
        static_cast<std::int32_t>((taps.first - origin) * kChannels);
    for (std::int64_t t = 0; t < taps.count; ++t) {
      Group& group = groups[static_cast<std::size_t>(x * per_pixel + t / kPixels)];
      // Pairs of pixels stand side by side, once for each channel.
      const std::int64_t place = t % kPixels / 2 * 8 + t % 2;
      for (std::int64_t c = 0; c < 4; ++c) {
        group.upper[place + 2 * c] = static_cast<std::int16_t>(taps.weights[t] >> kLowerBits);
        group.lower[place + 2 * c] =
            static_cast<std::int16_t>(taps.weights[t] & ((1 << kLowerBits) - 1));
      }
    }
  }
  constexpr std::int64_t kLoad = 16;
  reach = first.back() + (per_pixel - 1) * kPixels * kChannels + kLoad;
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
