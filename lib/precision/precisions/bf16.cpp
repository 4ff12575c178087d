// Autocast to bfloat16: matrix products and convolutions in bf16, sums and losses in fp32;
// parameters, gradients and optimizer state stay fp32. bf16 has fp32's range, so no loss scale is
// needed. It falls back to fp32, with a warning, on a CPU without AVX-512, where LibTorch's bf16 is
// many times slower than fp32, and on a GPU before compute capability 8.0, which has no bf16 units.
#include "lib/core/log.h"
#include "lib/precision/autocast.h"

namespace scaletrain::precision {

bool has_avx512() {
  return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0;
}

bool multiplies_bf16(const Hardware& hardware) {
  return hardware.device.is_cpu() ? hardware.avx512 : hardware.compute_capability >= 80;
}

std::unique_ptr<Precision> make_fp32(const recipe::Component& config, const Hardware& hardware);

std::unique_ptr<Precision> make_bf16(const recipe::Component& config, const Hardware& hardware) {
  if (multiplies_bf16(hardware)) {
    return std::make_unique<Autocast>(hardware.device.type(), at::kBFloat16);
  }
  if (hardware.device.is_cpu()) {
    core::warn("this CPU has no AVX-512 and LibTorch no fast bf16 without it: fp32 is used");
  } else {
    core::warn("this GPU has compute capability {}.{} and bf16 needs 8.0: fp32 is used",
               hardware.compute_capability / 10, hardware.compute_capability % 10);
  }
  return make_fp32(config, hardware);
}

}  // namespace scaletrain::precision
