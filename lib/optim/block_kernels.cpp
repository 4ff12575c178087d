#include "lib/optim/block_kernels.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "lib/core/cpu.h"
#include "lib/core/vectors.h"
#include "lib/optim/block_codes.h"

namespace scaletrain::optim {
namespace {

using vectors::all;
using vectors::Floats;
using vectors::Ints;
using vectors::kLanes;
using vectors::load;
using vectors::store;

constexpr int kDecades = 7;
constexpr int kZeroWithSigns = 127;

// code_values() as arithmetic. Magnitudes are numbered from 0, which is the value 0. In decade e,
// with the numbers from `first` = 2^e (with signs; twice that, less one, without) to `last`,
// magnitude `a` has the number floor(a * factor + offset).
struct Decades {
  std::array<float, 256> values{};
  Floats factor{}, offset{}, last{};        // index: decade
  std::array<float, kDecades - 1> above{};  // index of each decade above the previous one
  float above_zero = 0, above_last = 0;  // between 0 and the next value, and between the last two

  explicit Decades(bool has_signs) {
    const std::vector<float> sorted = code_values(has_signs);
    std::copy(sorted.begin(), sorted.end(), values.begin());
    const float* const sizes = sorted.data() + (has_signs ? kZeroWithSigns : 0);
    const int largest = has_signs ? 128 : 255;  // number of the value 1
    const int shift = has_signs ? 0 : 1;
    const auto between = [&](int place) {
      return static_cast<float>((static_cast<double>(sizes[place - 1]) + sizes[place]) / 2);
    };
    for (int decade = 0; decade < kDecades; ++decade) {
      const int parts = 1 << (decade + shift), first = parts - shift;
      const double per_part = parts / 0.9;
      factor[decade] = static_cast<float>(per_part * std::pow(10.0, kDecades - 1 - decade));
      offset[decade] = static_cast<float>(first - 0.1 * per_part);
      last[decade] = static_cast<float>(first + parts - 1);
      if (decade > 0) above.at(decade - 1) = between(first);
    }
    above_zero = between(1);
    above_last = between(largest);
  }
};

const Decades& decades(bool has_signs) {
  static const Decades with_signs(true), without_signs(false);
  return has_signs ? with_signs : without_signs;
}

[[gnu::always_inline, gnu::target("avx2,fma")]] inline Floats size_of(Floats x) {
  return x < 0.0F ? -x : x;
}

// a * b + c, rounded once. The compiler must not contract other expressions, so that all
// instruction sets round alike.
[[gnu::always_inline, gnu::target("avx2,fma")]] inline Floats fma(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}

// Returns, for each lane, the number of `table` at `index`.
[[gnu::always_inline, gnu::target("avx2,fma")]] inline Floats pick(Floats table, Ints index) {
  return _mm256_permutevar8x32_ps(table, reinterpret_cast<__m256i>(index));
}

// The places of eight sizes from 0 to 1.
template <bool kSigns>
[[gnu::always_inline, gnu::target("avx2,fma")]] inline Ints places(const Decades& table, Floats a) {
  Ints decade{};
  for (const float bound : table.above) decade -= a > bound;
  const Floats place = fma(a, pick(table.factor, decade), pick(table.offset, decade));
  const Floats last = pick(table.last, decade);
  Ints result = __builtin_convertvector(place < last ? place : last, Ints);
  result -= a > table.above_last;
  const Ints lowest = kSigns ? Ints{} : Ints{} - (a > 0.0F);
  return a > table.above_zero ? result : lowest;
}

template <bool kSigns>
[[gnu::always_inline, gnu::target("avx2,fma")]] inline Ints codes_of(const Decades& table, Floats x,
                                                                     float share) {
  const Ints place = places<kSigns>(table, size_of(x) * share);
  if constexpr (!kSigns) return place;
  const Ints code = kZeroWithSigns + (x < 0.0F ? -place : place);
  return code < 0 ? Ints{} : code;
}

using Values = std::array<float, kCodeBlock>;

// Values of the block, padded with zeros.
[[gnu::always_inline, gnu::target("avx2,fma")]] inline Values block_of(const float* values,
                                                                       std::int64_t count) {
  alignas(32) Values block;
  std::memcpy(block.data(), values, sizeof(float) * count);
  std::fill(block.begin() + count, block.end(), 0.0F);
  return block;
}

template <bool kSigns>
[[gnu::always_inline, gnu::target("avx2,fma")]] inline Values decode(const CodedBlock& coded,
                                                                     std::int64_t count) {
  const std::array<float, 256>& table = decades(kSigns).values;
  const float scale = *coded.scale;
  alignas(32) Values block;
  for (std::int64_t i = 0; i < count; ++i) block[i] = table[coded.codes[i]] * scale;
  std::fill(block.begin() + count, block.end(), 0.0F);
  return block;
}

template <bool kSigns>
[[gnu::always_inline, gnu::target("avx2,fma")]] inline void encode(const Values& values,
                                                                   const CodedBlock& coded,
                                                                   std::int64_t count) {
  Floats most{};
  for (std::int64_t i = 0; i < kCodeBlock; i += kLanes) {
    const Floats size = size_of(load(values.data() + i));
    most = size > most ? size : most;
  }
  const float scale = vectors::maximum(most);
  *coded.scale = scale;
  const float share = scale > 0 ? 1.0F / scale : 0.0F;
  const Decades& table = decades(kSigns);
  alignas(32) std::array<std::int32_t, kCodeBlock> wide;
  for (std::int64_t i = 0; i < kCodeBlock; i += kLanes) {
    const Ints codes = codes_of<kSigns>(table, load(values.data() + i), share);
    std::memcpy(wide.data() + i, &codes, sizeof codes);
  }
  std::array<std::uint8_t, kCodeBlock> codes;
  for (std::int64_t i = 0; i < kCodeBlock; ++i) codes[i] = static_cast<std::uint8_t>(wide[i]);
  std::memcpy(coded.codes, codes.data(), count);
}

}  // namespace

__attribute__((target("avx2,fma"))) void avx2_adamw_block(const AdamWNumbers& numbers,
                                                          const BlockStep& step,
                                                          const CodedBlock& average,
                                                          const CodedBlock& squares) {
  const auto [beta1, beta2, eps, keep, rate, correction] = numbers;
  const Values gradients = block_of(step.gradient, step.count);
  Values parameters = block_of(step.parameter, step.count);
  Values m = decode<true>(average, step.count), v = decode<false>(squares, step.count);
  for (std::int64_t i = 0; i < kCodeBlock; i += kLanes) {
    const Floats g = load(gradients.data() + i);
    const Floats first = fma(load(m.data() + i), all(beta1), g * (1 - beta1));
    const Floats second = fma(load(v.data() + i), all(beta2), g * g * (1 - beta2));
    store(m.data() + i, first);
    store(v.data() + i, second);
    const Floats root = _mm256_sqrt_ps(second * correction);
    const Floats change = first / (root + eps) * rate;
    store(parameters.data() + i, fma(load(parameters.data() + i), all(keep), -change));
  }
  std::memcpy(step.parameter, parameters.data(), sizeof(float) * step.count);
  encode<true>(m, average, step.count);
  encode<false>(v, squares, step.count);
}

__attribute__((target("avx2,fma"))) void avx2_lion_block(const LionNumbers& numbers,
                                                         const BlockStep& step,
                                                         const CodedBlock& average) {
  const auto [beta1, beta2, keep, rate] = numbers;
  const Values gradients = block_of(step.gradient, step.count);
  Values parameters = block_of(step.parameter, step.count);
  Values m = decode<true>(average, step.count);
  for (std::int64_t i = 0; i < kCodeBlock; i += kLanes) {
    const Floats g = load(gradients.data() + i), own = load(m.data() + i);
    const Floats direction = fma(own, all(beta1), g * (1 - beta1));
    const Floats sign = direction > 0.0F ? all(1) : direction < 0.0F ? all(-1) : Floats{};
    store(m.data() + i, fma(own, all(beta2), g * (1 - beta2)));
    store(parameters.data() + i, fma(load(parameters.data() + i), all(keep), -(sign * rate)));
  }
  std::memcpy(step.parameter, parameters.data(), sizeof(float) * step.count);
  encode<true>(m, average, step.count);
}

void adamw_block(const AdamWNumbers& numbers, const BlockStep& step, const CodedBlock& average,
                 const CodedBlock& squares) {
  const auto block = core::has_avx512() ? avx512_adamw_block : avx2_adamw_block;
  block(numbers, step, average, squares);
}

void lion_block(const LionNumbers& numbers, const BlockStep& step, const CodedBlock& average) {
  const auto block = core::has_avx512() ? avx512_lion_block : avx2_lion_block;
  block(numbers, step, average);
}

}  // namespace scaletrain::optim
