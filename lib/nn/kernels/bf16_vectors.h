// Loads and stores sixteen bf16 numbers as floats, for functions with the instructions of
// SCALETRAIN_AVX512 into which all of this is inlined.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "lib/nn/kernels/bf16.h"

#define SCALETRAIN_AVX512 gnu::target("avx512f,avx512bw,avx512dq,avx512vl")

namespace scaletrain::nn::kernels {

constexpr std::int64_t kWide = 16;

// Returns a mask of the first `count` lanes.
[[gnu::always_inline, SCALETRAIN_AVX512]] inline __mmask16 first_lanes(std::int64_t count) {
  return count >= kWide ? 0xFFFF : static_cast<__mmask16>((1U << count) - 1);
}

[[gnu::always_inline, SCALETRAIN_AVX512]] inline __m512 load_wide(__mmask16 lanes,
                                                                  const Bf16* from) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

[[gnu::always_inline, SCALETRAIN_AVX512]] inline void store_narrow(__mmask16 lanes, Bf16* to,
                                                                   __m512 values) {
  constexpr int kJustBelowHalf = 0x7FFF, kNan = 0x7FC0;
  const __m512i bits = _mm512_castps_si512(values);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(kJustBelowHalf)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  const __m512i halves =
      _mm512_mask_mov_epi32(_mm512_srli_epi32(rounded, 16), is_nan, _mm512_set1_epi32(kNan));
  _mm256_mask_storeu_epi16(to, lanes, _mm512_cvtepi32_epi16(halves));
}

}  // namespace scaletrain::nn::kernels
