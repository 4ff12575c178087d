// Softmax cross-entropy with label smoothing: the target's share is 1 - s, and s is spread evenly
// over all classes (Szegedy et al., Rethinking the Inception Architecture, 2015, section 7). Class
// weights work as in PyTorch: each class's log-probability has its own weight, and a mean over
// class numbers is divided by the sum of the targets' weights.
#include <ATen/ops/cross_entropy_loss.h>

#include <numeric>
#include <optional>
#include <utility>

#include "lib/nn/cut_cross_entropy.h"
#include "lib/nn/loss.h"
#include "lib/nn/losses/fused_cross_entropy.h"
#include "lib/nn/sigmoid_targets.h"
#include "lib/units/widened.h"

namespace scaletrain::nn {
namespace {

class CrossEntropy : public Loss {
 public:
  CrossEntropy(const recipe::Loss& loss, at::Device device)
      : label_smoothing_(loss.label_smoothing),
        class_weights_(loss.class_weights),
        weights_(class_weights_of(loss, device)) {}

  at::Tensor sum(const at::Tensor& logits, const at::Tensor& targets) const override {
    constexpr std::int64_t kNoIgnoredIndex = -100;
    if (is_plain() && fused_cross_entropy_takes(logits, targets)) {
      return fused_cross_entropy(logits, targets);
    }
    const at::Tensor wide = units::widened(logits);
    if (cut_) return cut_cross_entropy(wide, targets, label_smoothing_, *cut_);
    const at::Tensor same = targets.is_floating_point() ? targets.to(wide.scalar_type()) : targets;
    std::optional<at::Tensor> weights;
    if (weights_.defined()) weights = weights_.to(wide.scalar_type());
    return at::cross_entropy_loss(wide, same, weights, at::Reduction::Sum, kNoIgnoredIndex,
                                  label_smoothing_);
  }

  double weight_of(std::span<const std::int64_t> targets) const override {
    if (weighs_alike()) return Loss::weight_of(targets);
    return std::accumulate(targets.begin(), targets.end(), 0.0,
                           [this](double sum, std::int64_t target) {
                             return sum + class_weights_.at(static_cast<std::size_t>(target));
                           });
  }
  bool weighs_alike() const override { return class_weights_.empty(); }

  void cut_by(units::ClassCut cut) override {
    if (!weighs_alike()) return Loss::cut_by(std::move(cut));
    cut_ = std::move(cut);
  }

 private:
  bool is_plain() const { return !cut_ && label_smoothing_ == 0 && weighs_alike(); }

  double label_smoothing_;
  std::vector<double> class_weights_;
  at::Tensor weights_;  // class_weights_ on the device
  std::optional<units::ClassCut> cut_;
};

}  // namespace

std::unique_ptr<Loss> make_cross_entropy(const recipe::Loss& loss, at::Device device) {
  return std::make_unique<CrossEntropy>(loss, device);
}

}  // namespace scaletrain::nn
