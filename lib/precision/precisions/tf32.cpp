// Single precision whose matrix products and convolutions a GPU computes in TF32: 8 bits of
// exponent as fp32, 10 of fraction instead of 23, sums in fp32. Elsewhere it is fp32, and says so.
#include <ATen/Context.h>

#include "lib/core/log.h"
#include "lib/precision/precision.h"

namespace scaletrain::precision {

std::unique_ptr<Precision> make_fp32(const recipe::Component& config, const Hardware& hardware);

std::unique_ptr<Precision> make_tf32(const recipe::Component& config, const Hardware& hardware) {
  std::unique_ptr<Precision> plain = make_fp32(config, hardware);
  if (hardware.device.is_cpu()) {
    core::warn("a CPU has no TF32: fp32 is used");
  } else if (hardware.compute_capability < 80) {
    core::warn("this GPU has compute capability {}.{} and TF32 needs 8.0: fp32 is used",
               hardware.compute_capability / 10, hardware.compute_capability % 10);
  } else {
    at::globalContext().setAllowTF32CuDNN(true);
    at::globalContext().setAllowTF32CuBLAS(true);
  }
  return plain;
}

}  // namespace scaletrain::precision
