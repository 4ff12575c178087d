// Focal loss: a sigmoid for each class, with a lower weight for easy examples (Lin et al., Focal
// Loss for Dense Object Detection, 2017, equation 5): alpha_t (1 - p_t)^gamma times the binary
// cross-entropy, with targets as in torchvision's sigmoid_focal_loss.
#include <ATen/TensorOperators.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>

#include "lib/nn/loss.h"
#include "lib/nn/sigmoid_targets.h"
#include "lib/units/widened.h"

namespace scaletrain::nn {
namespace {

class Focal : public Loss {
 public:
  Focal(const recipe::Loss& loss, at::Device device)
      : label_smoothing_(loss.label_smoothing),
        alpha_(loss.number("alpha")),
        gamma_(loss.number("gamma")),
        sum_classes_(loss.flag("sum_classes")),
        weights_(class_weights_of(loss, device)) {}

  at::Tensor sum(const at::Tensor& logits, const at::Tensor& targets) const override {
    const at::Tensor wide = units::widened(logits);
    const at::Tensor shares = shares_for(wide, targets, label_smoothing_);
    const at::Tensor p = wide.sigmoid(), p_t = p * shares + (1 - p) * (1 - shares);
    at::Tensor losses =
        at::binary_cross_entropy_with_logits(wide, shares, {}, {}, at::Reduction::None) *
        (1 - p_t).pow(gamma_);
    if (alpha_ >= 0) losses = losses * (alpha_ * shares + (1 - alpha_) * (1 - shares));
    return sum_over_samples(losses, weights_, sum_classes_);
  }

 private:
  double label_smoothing_, alpha_, gamma_;
  bool sum_classes_;
  at::Tensor weights_;
};

}  // namespace

std::unique_ptr<Loss> make_focal(const recipe::Loss& loss, at::Device device) {
  return std::make_unique<Focal>(loss, device);
}

}  // namespace scaletrain::nn
