// Between bf16 and fp32, on a CPU. Only where core::has_avx512().
#pragma once

#include <cstdint>

#include "lib/nn/kernels/bf16.h"

namespace scaletrain::nn::kernels {

void widen(std::int64_t count, const Bf16* from, float* to);

// To the nearest, of two to the even one, as ATen.
void narrow(std::int64_t count, const float* from, Bf16* to);

}  // namespace scaletrain::nn::kernels
