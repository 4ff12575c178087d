// AutoAugment: applies two operations, one of 25 pairs that were learned on ImageNet (Cubuk et al.,
// AutoAugment, 2018, table 9; torchvision's AutoAugment with its ImageNet policy).
#include "lib/core/distributions.h"
#include "lib/data/augment/auto_augment_policy.h"
#include "lib/data/augment/magnitudes.h"
#include "lib/data/augment/sampling_name.h"
#include "lib/data/augment/transform.h"

namespace scaletrain::data {
namespace {

class AutoAugment : public Transform {
 public:
  explicit AutoAugment(Sampling sampling) : movement_{.sampling = sampling} {}

  void apply(Workspace& work, core::Philox& draws) const override {
    for (const PolicyStep& step : kImageNetPolicy.at(draws.below(kImageNetPolicy.size()))) {
      const bool happens = core::happens(draws, step.probability);
      const bool negative = core::happens(draws, 0.5);
      if (!happens) continue;
      const double value = value_at({}, step.op, step.level / kMostPolicyLevel, negative,
                                    work.image.width, work.image.height);
      apply_image_op(step.op, value, movement_, work.image, work.scratch);
    }
  }

 private:
  Movement movement_;
};

}  // namespace

std::unique_ptr<const Transform> make_auto_augment(const recipe::Component& config,
                                                   const recipe::Normalize& /*normalize*/) {
  return std::make_unique<AutoAugment>(sampling_named(config.text("interpolation")));
}

}  // namespace scaletrain::data
