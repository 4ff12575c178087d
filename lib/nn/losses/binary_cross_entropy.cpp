// Each class by itself: the cross-entropy of a sigmoid (Wightman et al., ResNet strikes back, 2021,
// section 2.3), its targets made as timm's BinaryCrossEntropy makes them.
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/tensor.h>

#include "lib/nn/loss.h"
#include "lib/nn/sigmoid_targets.h"
#include "lib/units/widened.h"

namespace scaletrain::nn {
namespace {

class BinaryCrossEntropy : public Loss {
 public:
  BinaryCrossEntropy(const recipe::Loss& loss, at::Device device)
      : label_smoothing_(loss.label_smoothing),
        target_threshold_(loss.number("target_threshold")),
        sum_classes_(loss.flag("sum_classes")),
        weights_(class_weights_of(loss, device)) {
    if (loss.number("pos_weight") != 1) {
      pos_weight_ = at::tensor({loss.number("pos_weight")}, at::kDouble).to(device);
    }
  }

  at::Tensor sum(const at::Tensor& logits, const at::Tensor& targets) const override {
    const at::Tensor wide = units::widened(logits);
    at::Tensor shares = shares_for(wide, targets, label_smoothing_);
    if (target_threshold_ < 1) shares = shares.gt(target_threshold_).to(shares.scalar_type());
    std::optional<at::Tensor> pos_weight;
    if (pos_weight_.defined()) pos_weight = pos_weight_.to(wide.scalar_type());
    return sum_over_samples(
        at::binary_cross_entropy_with_logits(wide, shares, {}, pos_weight, at::Reduction::None),
        weights_, sum_classes_);
  }

 private:
  double label_smoothing_, target_threshold_;
  bool sum_classes_;
  at::Tensor weights_, pos_weight_;  // undefined without such weights
};

}  // namespace

std::unique_ptr<Loss> make_binary_cross_entropy(const recipe::Loss& loss, at::Device device) {
  return std::make_unique<BinaryCrossEntropy>(loss, device);
}

}  // namespace scaletrain::nn
