// fp32 throughout. On a GPU, matrix products and convolutions use fp32 too; LibTorch's default lets
// cuDNN's convolutions use TF32.
#include <ATen/Context.h>

#include "lib/precision/precision.h"

namespace scaletrain::precision {
namespace {

class Fp32 : public Precision {
 public:
  at::Tensor forward(const std::function<at::Tensor()>& body) override { return body(); }
};

}  // namespace

std::unique_ptr<Precision> make_fp32(const recipe::Component& /*config*/,
                                     const Hardware& hardware) {
  if (hardware.device.is_cuda()) {
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setAllowTF32CuBLAS(false);
  }
  return std::make_unique<Fp32>();
}

}  // namespace scaletrain::precision
