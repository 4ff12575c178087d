// Repeated augmentation: every sample several times, each time with different random augmentations
// (Hoffer et al., Augment your batch, 2020; Berman et al., MultiGrain, 2019; timm's
// RepeatAugSampler).
//
// An epoch keeps its length and has `repeats` times fewer samples. A global batch has the samples
// that timm's sampler gives to all ranks together: the next samples of the epoch's order, each
// `repeats` times. Copies are placed as far apart as the batch allows, so that mixup and cutmix,
// which pair neighbours, never mix a sample with itself, and so that different ranks get them.
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
  // Returns the position in the order that is repeated.
  std::int64_t position_once(std::int64_t epoch, std::int64_t position) const;

  std::shared_ptr<const Order> once_;
  std::int64_t repeats_, global_batch_;
  std::shared_ptr<const core::StepPlan> growing_;
};

}  // namespace scaletrain::data
