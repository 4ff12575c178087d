// fp64 throughout: parameters, buffers, activations, gradients and optimizer state. Slow, with
// twice the memory; it shows whether a difference is due to rounding.
#include "lib/precision/precision.h"

namespace scaletrain::precision {
namespace {

class Fp64 : public Precision {
 public:
  at::Tensor forward(const std::function<at::Tensor()>& body) override { return body(); }
  at::ScalarType weights() const override { return at::kDouble; }
};

}  // namespace

std::unique_ptr<Precision> make_fp64(const recipe::Component& /*config*/,
                                     const Hardware& /*hardware*/) {
  return std::make_unique<Fp64>();
}

}  // namespace scaletrain::precision
