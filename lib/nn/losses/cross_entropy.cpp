// Softmax cross-entropy with label smoothing: the target's share is 1 - s, and s is spread evenly
// over all classes (Szegedy et al., Rethinking the Inception Architecture, 2015, section 7).
#include <ATen/ops/cross_entropy_loss.h>
#include <c10/core/ScalarType.h>

#include "lib/nn/loss.h"

namespace scaletrain::nn {
namespace {

class CrossEntropy : public Loss {
 public:
  explicit CrossEntropy(double label_smoothing) : label_smoothing_(label_smoothing) {}

  at::Tensor sum(const at::Tensor& logits, const at::Tensor& targets) const override {
    constexpr std::int64_t kNoIgnoredIndex = -100;
    const at::Tensor wide = logits.to(c10::promoteTypes(logits.scalar_type(), at::kFloat));
    const at::Tensor same = targets.is_floating_point() ? targets.to(wide.scalar_type()) : targets;
    return at::cross_entropy_loss(wide, same, {}, at::Reduction::Sum, kNoIgnoredIndex,
                                  label_smoothing_);
  }

 private:
  double label_smoothing_;
};

}  // namespace

std::unique_ptr<Loss> make_cross_entropy(const recipe::Loss& loss) {
  return std::make_unique<CrossEntropy>(loss.label_smoothing);
}

}  // namespace scaletrain::nn
