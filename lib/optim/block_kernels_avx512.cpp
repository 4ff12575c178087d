#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "lib/optim/block_codes.h"
#include "lib/optim/block_kernels.h"

// Uses intrinsics throughout: loops left to the compiler were several times slower
// (docs/lab/performance.md). An inlined function needs the same target as its caller.
#define SCALETRAIN_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")

namespace scaletrain::optim {
namespace {

constexpr int kDecades = 7;
constexpr int kZeroWithSigns = 127;
constexpr std::int64_t kWide = 16;   // floats in a register
constexpr std::int64_t kBytes = 64;  // codes in a register

// Tables of code_values() for registers of 64 bytes.
//
// Decoding: byte b of the value of each code. Encoding: magnitudes are numbered from 0, which is
// the value 0, and belong to rows: 0, the seven decades, 1. Each row begins above a bound. Between
// a power of two and the next there is at most one bound, so that a magnitude's exponent and one
// comparison give its row. In a row, magnitude `a` has the number floor(a * factor + offset), at
// most `last`.
struct alignas(64) WideCodes {
  static constexpr int kExponents = 32;  // 2^-31 to 1

  std::array<std::array<std::uint8_t, 256>, sizeof(float)> bytes{};
  std::array<std::int32_t, kExponents> row{};           // row of 2^(i - 31)
  std::array<float, kExponents> above{};                // begin of the next row
  std::array<float, kWide> factor{}, offset{}, last{};  // index: row

  explicit WideCodes(bool has_signs) {
    const std::vector<float> values = code_values(has_signs);
    for (std::size_t code = 0; code < values.size(); ++code) {
      const auto bits = std::bit_cast<std::uint32_t>(values[code]);
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i][code] = static_cast<std::uint8_t>(bits >> (8 * i));
      }
    }
    set_rows(values.data() + (has_signs ? kZeroWithSigns : 0), has_signs);
  }

 private:
  void set_rows(const float* sizes, bool has_signs) {
    const int largest = has_signs ? 128 : 255;  // number of the value 1
    const int shift = has_signs ? 0 : 1;
    std::vector<float> bounds;
    const auto add_bound = [&](int place) {
      const double sum = static_cast<double>(sizes[place - 1]) + sizes[place];
      bounds.push_back(static_cast<float>(sum / 2));
    };
    for (int decade = 0; decade < kDecades; ++decade) {
      const int parts = 1 << (decade + shift), first = parts - shift, at = decade + 1;
      const double per_part = parts / 0.9;
      factor[at] = static_cast<float>(per_part * std::pow(10.0, kDecades - 1 - decade));
      offset[at] = static_cast<float>(first - 0.1 * per_part);
      last[at] = static_cast<float>(first + parts - 1);
      add_bound(first);
    }
    offset[kDecades + 1] = last[kDecades + 1] = static_cast<float>(largest);
    add_bound(largest);
    for (int i = 0; i < kExponents; ++i) {
      const auto low = static_cast<float>(std::ldexp(1.0, i + 1 - kExponents));
      above[i] = std::numeric_limits<float>::infinity();
      for (const float bound : bounds) {
        if (bound < low) {
          ++row[i];
        } else if (bound < 2 * low) {
          above[i] = bound;
        }
      }
    }
  }
};

const WideCodes& wide_codes(bool has_signs) {
  static const WideCodes with_signs(true), without_signs(false);
  return has_signs ? with_signs : without_signs;
}

// 256 bytes, one for each code.
struct ByteOfCodes {
  __m512i first, second, third, fourth;

  [[gnu::always_inline, SCALETRAIN_AVX512]] explicit ByteOfCodes(const std::uint8_t* bytes)
      : first(_mm512_loadu_si512(bytes)),
        second(_mm512_loadu_si512(bytes + kBytes)),
        third(_mm512_loadu_si512(bytes + 2 * kBytes)),
        fourth(_mm512_loadu_si512(bytes + 3 * kBytes)) {}

  // Returns the byte of each of 64 codes.
  [[gnu::always_inline, SCALETRAIN_AVX512]] __m512i of(__m512i codes) const {
    return _mm512_mask_mov_epi8(_mm512_permutex2var_epi8(first, codes, second),
                                _mm512_movepi8_mask(codes),
                                _mm512_permutex2var_epi8(third, codes, fourth));
  }
};

// Order of the 64 codes in which unpacking their bytes within each quarter of a register, and then
// pairs of them, yields the values in order.
struct alignas(64) UnpackOrder {
  std::array<std::uint8_t, kBytes> from{};
  constexpr UnpackOrder() {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::size_t quarter = i / 16, result = i / 4 % 4, lane = i % 4;
      from[i] = static_cast<std::uint8_t>(16 * result + 4 * quarter + lane);
    }
  }
};
constexpr UnpackOrder kUnpackOrder;

struct alignas(64) WideBlock : std::array<float, kCodeBlock> {};

[[gnu::always_inline, SCALETRAIN_AVX512]] inline void put_scaled(__m512i bits, __m512 scale,
                                                                 float* to) {
  _mm512_store_ps(to, _mm512_mul_ps(_mm512_castsi512_ps(bits), scale));
}

template <bool kSigns>
[[gnu::always_inline, SCALETRAIN_AVX512]] inline void decode(const CodedBlock& coded,
                                                             WideBlock& block) {
  const WideCodes& table = wide_codes(kSigns);
  const ByteOfCodes lowest(table.bytes[0].data()), lower(table.bytes[1].data());
  const ByteOfCodes higher(table.bytes[2].data()), highest(table.bytes[3].data());
  const __m512i order = _mm512_load_si512(kUnpackOrder.from.data());
  const __m512 scale = _mm512_set1_ps(*coded.scale);
  for (std::int64_t i = 0; i < kCodeBlock; i += kBytes) {
    const __m512i codes = _mm512_permutexvar_epi8(order, _mm512_loadu_si512(coded.codes + i));
    const __m512i a = lowest.of(codes), b = lower.of(codes);
    const __m512i c = higher.of(codes), d = highest.of(codes);
    const __m512i low_ab = _mm512_unpacklo_epi8(a, b), low_cd = _mm512_unpacklo_epi8(c, d);
    const __m512i high_ab = _mm512_unpackhi_epi8(a, b), high_cd = _mm512_unpackhi_epi8(c, d);
    float* const to = block.data() + i;
    put_scaled(_mm512_unpacklo_epi16(low_ab, low_cd), scale, to);
    put_scaled(_mm512_unpackhi_epi16(low_ab, low_cd), scale, to + kWide);
    put_scaled(_mm512_unpacklo_epi16(high_ab, high_cd), scale, to + 2 * kWide);
    put_scaled(_mm512_unpackhi_epi16(high_ab, high_cd), scale, to + 3 * kWide);
  }
}

// `most`: one lane has the largest magnitude of the block.
template <bool kSigns>
[[gnu::always_inline, SCALETRAIN_AVX512]] inline void encode(const WideBlock& block, __m512 most,
                                                             const CodedBlock& coded) {
  const float scale = _mm512_reduce_max_ps(most);
  *coded.scale = scale;
  const __m512 share = _mm512_set1_ps(scale > 0 ? 1.0F / scale : 0.0F), none = _mm512_setzero_ps();
  const WideCodes& table = wide_codes(kSigns);
  const __m512i row0 = _mm512_loadu_si512(table.row.data());
  const __m512i row1 = _mm512_loadu_si512(table.row.data() + kWide);
  const __m512 above0 = _mm512_loadu_ps(table.above.data());
  const __m512 above1 = _mm512_loadu_ps(table.above.data() + kWide);
  const __m512 factors = _mm512_loadu_ps(table.factor.data());
  const __m512 offsets = _mm512_loadu_ps(table.offset.data());
  const __m512 lasts = _mm512_loadu_ps(table.last.data());
  const __m512 lowest = _mm512_set1_ps(0x1p-31F), highest = _mm512_set1_ps(1);
  const __m512i one = _mm512_set1_epi32(1), zero_code = _mm512_set1_epi32(kZeroWithSigns);
  for (std::int64_t i = 0; i < kCodeBlock; i += kWide) {
    const __m512 x = _mm512_load_ps(block.data() + i);
    const __m512 size = _mm512_mul_ps(_mm512_abs_ps(x), share);
    // NaN becomes the lowest value: max returns its second operand if one is NaN.
    const __m512 a = _mm512_min_ps(_mm512_max_ps(size, lowest), highest);
    const __m512i exponent = _mm512_srli_epi32(_mm512_castps_si512(a), 23);  // its low 5 bits count
    const __m512 bound = _mm512_permutex2var_ps(above0, exponent, above1);
    const __m512i row_below = _mm512_permutex2var_epi32(row0, exponent, row1);
    const __m512i row =
        _mm512_mask_add_epi32(row_below, _mm512_cmp_ps_mask(a, bound, _CMP_GT_OQ), row_below, one);
    const __m512 place = _mm512_fmadd_ps(a, _mm512_permutexvar_ps(row, factors),
                                         _mm512_permutexvar_ps(row, offsets));
    __m512i code = _mm512_cvttps_epi32(_mm512_min_ps(place, _mm512_permutexvar_ps(row, lasts)));
    if constexpr (kSigns) {
      const __mmask16 negative = _mm512_cmp_ps_mask(x, none, _CMP_LT_OQ);
      code = _mm512_mask_sub_epi32(_mm512_add_epi32(zero_code, code), negative, zero_code, code);
      code = _mm512_max_epi32(code, _mm512_setzero_si512());
    } else {
      const __mmask16 above_zero = _mm512_cmp_ps_mask(size, none, _CMP_GT_OQ);
      code = _mm512_mask_max_epi32(code, above_zero, code, one);
    }
    const __m128i narrow = _mm512_cvtepi32_epi8(code);
    std::memcpy(coded.codes + i, &narrow, sizeof narrow);
  }
}

// `largest` in each lane, where `values` has a larger size there.
[[gnu::always_inline, SCALETRAIN_AVX512]] inline __m512 larger(__m512 values, __m512 largest) {
  // Max returns the second operand if one is NaN.
  return _mm512_max_ps(_mm512_abs_ps(values), largest);
}

// Copy of a block of fewer than kCodeBlock values, padded with zeros.
class Padded {
 public:
  explicit Padded(const BlockStep& step) : step_(step) {
    std::copy_n(step.parameter, step.count, parameter_.data());
    std::copy_n(step.gradient, step.count, gradient_.data());
  }
  BlockStep step() { return {kCodeBlock, parameter_.data(), gradient_.data()}; }
  void put_back() const { std::copy_n(parameter_.data(), step_.count, step_.parameter); }

 private:
  BlockStep step_;
  WideBlock parameter_{}, gradient_{};
};

class PaddedCodes {
 public:
  PaddedCodes(const CodedBlock& coded, std::int64_t count, bool has_signs)
      : coded_(coded), count_(count) {
    codes_.fill(has_signs ? kZeroWithSigns : 0);
    std::copy_n(coded.codes, count, codes_.data());
  }
  CodedBlock block() { return {codes_.data(), coded_.scale}; }
  void put_back() const { std::copy_n(codes_.data(), count_, coded_.codes); }

 private:
  CodedBlock coded_;
  std::int64_t count_;
  std::array<std::uint8_t, kCodeBlock> codes_{};
};

[[SCALETRAIN_AVX512]] void whole_adamw(const AdamWNumbers& numbers, const BlockStep& step,
                                       const CodedBlock& average, const CodedBlock& squares) {
  WideBlock m, v;
  decode<true>(average, m);
  decode<false>(squares, v);
  const __m512 beta1 = _mm512_set1_ps(numbers.beta1), rest1 = _mm512_set1_ps(1 - numbers.beta1);
  const __m512 beta2 = _mm512_set1_ps(numbers.beta2), rest2 = _mm512_set1_ps(1 - numbers.beta2);
  const __m512 eps = _mm512_set1_ps(numbers.eps), keep = _mm512_set1_ps(numbers.keep);
  const __m512 rate = _mm512_set1_ps(numbers.rate);
  const __m512 correction = _mm512_set1_ps(numbers.correction);
  __m512 most_m = _mm512_setzero_ps(), most_v = most_m;
  for (std::int64_t i = 0; i < kCodeBlock; i += kWide) {
    const __m512 g = _mm512_loadu_ps(step.gradient + i), p = _mm512_loadu_ps(step.parameter + i);
    const __m512 first =
        _mm512_fmadd_ps(_mm512_load_ps(m.data() + i), beta1, _mm512_mul_ps(g, rest1));
    const __m512 second = _mm512_fmadd_ps(_mm512_load_ps(v.data() + i), beta2,
                                          _mm512_mul_ps(_mm512_mul_ps(g, g), rest2));
    _mm512_store_ps(m.data() + i, first);
    _mm512_store_ps(v.data() + i, second);
    most_m = larger(first, most_m);
    most_v = larger(second, most_v);
    const __m512 root = _mm512_sqrt_ps(_mm512_mul_ps(second, correction));
    const __m512 change = _mm512_mul_ps(_mm512_div_ps(first, _mm512_add_ps(root, eps)), rate);
    _mm512_storeu_ps(step.parameter + i, _mm512_fmsub_ps(p, keep, change));
  }
  encode<true>(m, most_m, average);
  encode<false>(v, most_v, squares);
}

[[SCALETRAIN_AVX512]] void whole_lion(const LionNumbers& numbers, const BlockStep& step,
                                      const CodedBlock& average) {
  WideBlock m;
  decode<true>(average, m);
  const __m512 beta1 = _mm512_set1_ps(numbers.beta1), rest1 = _mm512_set1_ps(1 - numbers.beta1);
  const __m512 beta2 = _mm512_set1_ps(numbers.beta2), rest2 = _mm512_set1_ps(1 - numbers.beta2);
  const __m512 keep = _mm512_set1_ps(numbers.keep), none = _mm512_setzero_ps();
  const __m512 up = _mm512_set1_ps(numbers.rate), down = _mm512_set1_ps(-numbers.rate);
  __m512 most = none;
  for (std::int64_t i = 0; i < kCodeBlock; i += kWide) {
    const __m512 g = _mm512_loadu_ps(step.gradient + i), p = _mm512_loadu_ps(step.parameter + i);
    const __m512 own = _mm512_load_ps(m.data() + i);
    const __m512 direction = _mm512_fmadd_ps(own, beta1, _mm512_mul_ps(g, rest1));
    __m512 change = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(direction, none, _CMP_GT_OQ), up);
    change = _mm512_mask_mov_ps(change, _mm512_cmp_ps_mask(direction, none, _CMP_LT_OQ), down);
    const __m512 moved = _mm512_fmadd_ps(own, beta2, _mm512_mul_ps(g, rest2));
    _mm512_store_ps(m.data() + i, moved);
    most = larger(moved, most);
    _mm512_storeu_ps(step.parameter + i, _mm512_fmsub_ps(p, keep, change));
  }
  encode<true>(m, most, average);
}

}  // namespace

void avx512_adamw_block(const AdamWNumbers& numbers, const BlockStep& step,
                        const CodedBlock& average, const CodedBlock& squares) {
  if (step.count == kCodeBlock) return whole_adamw(numbers, step, average, squares);
  Padded padded(step);
  PaddedCodes of_average(average, step.count, true), of_squares(squares, step.count, false);
  whole_adamw(numbers, padded.step(), of_average.block(), of_squares.block());
  padded.put_back();
  of_average.put_back();
  of_squares.put_back();
}

void avx512_lion_block(const LionNumbers& numbers, const BlockStep& step,
                       const CodedBlock& average) {
  if (step.count == kCodeBlock) return whole_lion(numbers, step, average);
  Padded padded(step);
  PaddedCodes of_average(average, step.count, true);
  whole_lion(numbers, padded.step(), of_average.block());
  padded.put_back();
  of_average.put_back();
}

}  // namespace scaletrain::optim
