// Repeated augmentation: every sample several times, with other draws each time (Hoffer et al.,
// Augment your batch, 2020; Berman et al., MultiGrain, 2019; timm's RepeatAugSampler).
//
// An epoch is as long as before and has so many times fewer samples. A global batch holds what
// timm's sampler gives all ranks together for it: the next samples of the epoch's order, each
// `repeats` times. They do not stand next to one another, but as far apart as the batch allows, so
// that mixup and cutmix, which pair neighbours, never mix a sample with itself, and the ranks share
// them.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/core/plan/step_plan.h"
#include "lib/data/order/order.h"

namespace scaletrain::data {

class RepeatedOrder : public Order {
 public:
  // `growing`: step plan if the global batch changes between steps; otherwise nullptr.
  RepeatedOrder(std::shared_ptr<const Order> once, std::int64_t repeats, std::int64_t global_batch,
                std::shared_ptr<const core::StepPlan> growing = nullptr);

  std::int64_t size() const override { return once_->size(); }
  SamplePlace at(std::int64_t epoch, std::int64_t position) const override;
  SamplePlace replacement(std::int64_t epoch, std::int64_t position,
                          core::Philox& draws) const override;

 private:
  // The position in the order that is repeated.
  std::int64_t position_once(std::int64_t epoch, std::int64_t position) const;

  std::shared_ptr<const Order> once_;
  std::int64_t repeats_, global_batch_;
  std::shared_ptr<const core::StepPlan> growing_;
};

}  // namespace scaletrain::data
