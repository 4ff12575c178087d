// What the processor can do.
#pragma once

namespace scaletrain::core {

// Whether it has AVX2 and fused multiplication, which lib/core/vectors.h needs.
inline bool has_avx2() {
  static const bool kHas =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return kHas;
}

}  // namespace scaletrain::core
