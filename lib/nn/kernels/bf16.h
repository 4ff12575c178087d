// Numbers in bf16 on a CPU: the kernels of this folder compute them in fp32.
#pragma once

#include <cstdint>

namespace scaletrain::nn::kernels {

// The upper half of a float.
struct Bf16 {
  std::uint16_t bits;
};

// Only where core::has_avx512(), as the next.
void widen(std::int64_t count, const Bf16* from, float* to);
// To the nearest, of two to the even one, as ATen.
void narrow(std::int64_t count, const float* from, Bf16* to);

}  // namespace scaletrain::nn::kernels
