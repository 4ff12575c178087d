// Converts between bf16 and fp32 on a CPU. Needs core::has_avx512().
#pragma once

#include <cstdint>

#include "lib/nn/kernels/bf16.h"

namespace scaletrain::nn::kernels {

void widen(std::int64_t count, const Bf16* from, float* to);

// Rounds to nearest, ties to even, as ATen.
void narrow(std::int64_t count, const float* from, Bf16* to);

}  // namespace scaletrain::nn::kernels
