// TF32: fp32 whose matrix products and convolutions a GPU computes with 10 fraction bits instead of
// 23, and sums in fp32. Hardware without TF32 uses fp32, with a warning.
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
