// Vectors of eight floats (AVX2). Everything here is inlined into functions compiled for AVX2,
// which may be called only if core::has_avx2() (cpu.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace scaletrain::vectors {

using Floats = float __attribute__((vector_size(32)));
using Ints = std::int32_t __attribute__((vector_size(32)));
constexpr std::int64_t kLanes = 8;

[[gnu::always_inline]] inline Floats load(const float* values) {
  Floats result;
  std::memcpy(&result, values, sizeof result);
  return result;
}

[[gnu::always_inline]] inline void store(float* values, Floats floats) {
  std::memcpy(values, &floats, sizeof floats);
}

[[gnu::always_inline]] inline Floats all(float value) {
  return Floats{value, value, value, value, value, value, value, value};
}

[[gnu::always_inline]] inline float sum(Floats floats) {
  float result = 0;
  for (int lane = 0; lane < kLanes; ++lane) result += floats[lane];
  return result;
}

[[gnu::always_inline]] inline float maximum(Floats floats) {
  float result = floats[0];
  for (int lane = 1; lane < kLanes; ++lane) result = std::max(result, floats[lane]);
  return result;
}

// e^x in the precision of fp32; an x whose result is not a normal number is first moved to the
// nearest x with a normal result. NaN stays NaN. Reduction and polynomial as Moshier's expf
// (Cephes, single precision).
[[gnu::always_inline]] inline Floats exp(Floats x) {
  constexpr float kLowest = -87.0F, kHighest = 88.0F;
  constexpr float kLog2E = 1.44269504F, kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded
  constexpr std::int32_t kRoundBits = 0x4B400000, kMantissaBits = 23;
  x = x < kLowest ? all(kLowest) : x;
  x = x > kHighest ? all(kHighest) : x;
  const Floats shifted = x * kLog2E + kRound;
  const Floats whole = shifted - kRound;
  const Floats rest = x - whole * kLn2High - whole * kLn2Low;
  Floats result = rest * 1.9875691500e-4F + 1.3981999507e-3F;
  result = result * rest + 8.3334519073e-3F;
  result = result * rest + 4.1665795894e-2F;
  result = result * rest + 1.6666665459e-1F;
  result = result * rest + 5.0000001201e-1F;
  result = result * (rest * rest) + rest + 1.0F;
  Ints exponent, bits;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  std::memcpy(&bits, &result, sizeof bits);
  bits += (exponent - kRoundBits) << kMantissaBits;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

// y[i] = body(x[i]...) for `count` values of each input.
template <typename Body, typename... Inputs>
[[gnu::always_inline]] inline void map(std::int64_t count, float* y, const Body& body,
                                       const Inputs*... x) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(y + i, body(load(x + i)...));
  if (i == count) return;
  const auto part = [&](const float* values) __attribute__((always_inline)) {
    Floats result{};
    for (int lane = 0; lane < count - i; ++lane) result[lane] = values[i + lane];
    return result;
  };
  const Floats last = body(part(x)...);
  for (int lane = 0; lane < count - i; ++lane) y[i + lane] = last[lane];
}

}  // namespace scaletrain::vectors
