// Single precision throughout: nothing is done to forward, loss or gradients.
#include "lib/precision/precision.h"

namespace scaletrain::precision {
namespace {

class Fp32 : public Precision {
 public:
  at::Tensor forward(const std::function<at::Tensor()>& body) override { return body(); }
};

}  // namespace

std::unique_ptr<Precision> make_fp32(const recipe::Component& /*config*/, at::Device /*device*/) {
  return std::make_unique<Fp32>();
}

}  // namespace scaletrain::precision
