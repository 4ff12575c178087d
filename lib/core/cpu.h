// CPU features.
#pragma once

namespace scaletrain::core {

// True if the CPU has AVX2 and fused multiplication, which lib/core/vectors.h needs.
inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
}

// True if the CPU permutes bytes with AVX-512: Intel's since Ice Lake, AMD's since Zen 4.
inline bool has_avx512() {
  static const bool has =
      has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512vbmi") != 0;
  return has;
}

}  // namespace scaletrain::core
