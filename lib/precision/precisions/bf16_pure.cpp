// Pure bf16: parameters and gradients are bf16 too, without fp32 copies. BatchNorm stays in fp32,
// since its running statistics would stop changing. Operations that autocast computes in fp32, such
// as losses, use fp32 here too. How the optimizer rounds: lib/optim/bf16_weights.h.
#include "lib/core/log.h"
#include "lib/precision/autocast.h"

namespace scaletrain::precision {
namespace {

class Bf16Pure : public Autocast {
 public:
  explicit Bf16Pure(at::DeviceType device) : Autocast(device, at::kBFloat16) {}
  at::ScalarType weights() const override { return at::kBFloat16; }
};

}  // namespace

std::unique_ptr<Precision> make_bf16_pure(const recipe::Component& /*config*/,
                                          const Hardware& hardware) {
  if (!multiplies_bf16(hardware)) {
    core::warn("this {} has no fast bf16: the weights are bf16 all the same, and steps are slow",
               hardware.device.is_cpu() ? "CPU" : "GPU");
  }
  return std::make_unique<Bf16Pure>(hardware.device.type());
}

}  // namespace scaletrain::precision
