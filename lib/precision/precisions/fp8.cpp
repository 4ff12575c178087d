// fp8 matrix products in hidden linear layers (lib/precision/float8.h), bf16 autocast for
// everything else; parameters, gradients and optimizer state stay fp32.
#include <fmt/format.h>

#include <utility>

#include "lib/core/error.h"
#include "lib/precision/float8.h"
#include "lib/precision/precision.h"

namespace scaletrain::precision {

std::unique_ptr<Precision> make_bf16(const recipe::Component& config, const Hardware& hardware);

namespace {

constexpr int kLeastCapability = 89;

class Fp8 : public Precision {
 public:
  Fp8(std::unique_ptr<Precision> others, const Float8& how)
      : others_(std::move(others)), how_(how) {}

  at::Tensor forward(const std::function<at::Tensor()>& body) override {
    return others_->forward(body);
  }
  units::LinearProduct linear_product() const override {
    return [how = how_](const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias) {
      return float8_linear(input, weight, bias, how);
    };
  }

 private:
  std::unique_ptr<Precision> others_;
  Float8 how_;
};

}  // namespace

std::unique_ptr<Precision> make_fp8(const recipe::Component& config, const Hardware& hardware) {
  const bool simulated = config.flag("simulate"), is_gpu = hardware.device.is_cuda();
  if (!simulated && (!is_gpu || hardware.compute_capability < kLeastCapability)) {
    throw core::RecipeError(
        "/precision",
        fmt::format("fp8 needs a GPU of compute capability 8.9, and this is a {}",
                    is_gpu ? fmt::format("GPU of {}.{}", hardware.compute_capability / 10,
                                         hardware.compute_capability % 10)
                           : "CPU"),
        R"(use bf16, or compute the same roundings slowly with "simulate": true)");
  }
  const Float8 how{
      .scaling = config.text("scaling") == "rowwise" ? Scaling::kRowwise : Scaling::kTensorwise,
      .result = multiplies_bf16(hardware) ? at::kBFloat16 : at::kFloat,
      .simulated = simulated};
  return std::make_unique<Fp8>(make_bf16(config, hardware), how);
}

}  // namespace scaletrain::precision
