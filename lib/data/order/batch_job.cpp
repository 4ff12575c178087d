#include "lib/data/order/batch_job.h"

#include <algorithm>

#include "lib/recipe/sections/batch.h"

namespace scaletrain::data {

// Micro-step j of a step starts at the step's first position + (j n + r) b and has b = per_device
// positions, for rank r of n. Batch `number` follows `number` complete micro-batches.
BatchJob train_job(const ReaderSlice& slice, const core::StepPlan& plan, std::int64_t number) {
  const std::int64_t sample = number * slice.micro_batch();
  const std::int64_t step = plan.sizes().step_of_sample(sample);
  const std::int64_t micro_step =
      (sample - plan.sizes().samples_before(step)) / slice.micro_batch();
  const std::int64_t block = micro_step * slice.readers + slice.reader;
  const core::StepPlace place = plan.at(step);
  return {place.epoch, place.position + block * slice.per_device, slice.per_device};
}

std::int64_t first_job(const ReaderSlice& slice, const core::StepPlan& plan, std::int64_t step) {
  return plan.sizes().samples_before(step) / slice.micro_batch();
}

std::optional<BatchJob> eval_job(const ReaderSlice& slice, std::int64_t size, std::int64_t number) {
  const std::int64_t begin = (number * slice.readers + slice.reader) * slice.per_device;
  if (begin >= size) return std::nullopt;
  return BatchJob{0, begin, std::min(slice.per_device, size - begin)};
}

std::shared_ptr<const core::StepPlan> plan_steps(const ReaderSlice& slice, std::int64_t samples) {
  recipe::check_epoch_of({.per_device = slice.per_device,
                          .accumulate = slice.accumulate,
                          .global = slice.global_batch()},
                         samples);
  const core::BatchSizes sizes(slice.global_batch(), slice.ramp);
  auto plan = std::make_shared<const core::StepPlan>(sizes, samples);
  if (!slice.ramp || plan->at(slice.from_step) == slice.from) return plan;
  return std::make_shared<const core::StepPlan>(sizes, samples, slice.from_step, slice.from);
}

}  // namespace scaletrain::data
