#include "lib/nn/kernels/convert_bf16.h"

#include "lib/nn/kernels/bf16_vectors.h"

namespace scaletrain::nn::kernels {

[[SCALETRAIN_AVX512]] void widen(std::int64_t count, const Bf16* from, float* to) {
  for (std::int64_t i = 0; i < count; i += kWide) {
    const __mmask16 lanes = first_lanes(count - i);
    _mm512_mask_storeu_ps(to + i, lanes, load_wide(lanes, from + i));
  }
}

[[SCALETRAIN_AVX512]] void narrow(std::int64_t count, const float* from, Bf16* to) {
  for (std::int64_t i = 0; i < count; i += kWide) {
    const __mmask16 lanes = first_lanes(count - i);
    store_narrow(lanes, to + i, _mm512_maskz_loadu_ps(lanes, from + i));
  }
}

}  // namespace scaletrain::nn::kernels
