// Autocast to float16; parameters, gradients and optimizer state stay fp32. Loss scaling keeps
// small gradients from becoming 0 in fp16, which has 5 exponent bits: the loss is multiplied by a
// scale, and the fp32 gradients are divided by it (Micikevicius et al., Mixed Precision Training,
// 2018, section 3.2). As in torch.amp.GradScaler, and with the same kernel, the scale falls when a
// gradient is not finite and grows after a number of finite steps.
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "lib/precision/autocast.h"

namespace scaletrain::precision {
namespace {

class Fp16 : public Autocast {
 public:
  Fp16(const recipe::Component& config, at::Device device)
      : Autocast(device.type(), at::kHalf),
        growth_factor_(config.number("growth_factor")),
        backoff_factor_(config.number("backoff_factor")),
        growth_interval_(config.integer("growth_interval")),
        scale_(at::full({}, config.number("init_scale"),
                        at::TensorOptions(at::kFloat).device(device))),
        tracker_(at::zeros({}, at::TensorOptions(at::kInt).device(device))) {}

  at::Tensor scale(const at::Tensor& loss) override { return loss * scale_; }

  void unscale(const std::vector<at::Tensor>& gradients) override {
    if (gradients.empty()) return;
    const at::NoGradGuard no_grad;
    at::_foreach_mul_(gradients, scale_.to(at::kDouble).reciprocal().to(at::kFloat));
  }

  void update(const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    at::_amp_update_scale_(scale_, tracker_, found_inf, growth_factor_, backoff_factor_,
                           growth_interval_);
  }

  at::Tensor loss_scale() const override { return scale_; }

  std::map<std::string, at::Tensor> state() override {
    return {{"scale", scale_}, {"growth_tracker", tracker_}};
  }

 private:
  double growth_factor_, backoff_factor_;
  std::int64_t growth_interval_;
  at::Tensor scale_;    // 0-dim fp32 on the device
  at::Tensor tracker_;  // consecutive steps at this scale: 0-dim int32
};

}  // namespace

std::unique_ptr<Precision> make_fp16(const recipe::Component& config, const Hardware& hardware) {
  return std::make_unique<Fp16>(config, hardware.device);
}

}  // namespace scaletrain::precision
