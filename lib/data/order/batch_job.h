// Assignment of the positions of an epoch to the batches of each data-parallel rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/core/plan/step_plan.h"

namespace scaletrain::data {

// The part of every global batch that a data-parallel rank reads: `reader` of `readers` (dp_rank of
// dp_size, lib/core/plan/mesh_plan.h). Ranks with the same `reader` read the same samples.
struct ReaderSlice {
  int reader = 0;
  int readers = 1;
  std::int64_t per_device = 1;  // b: samples of a micro-batch
  std::int64_t accumulate = 1;  // micro-batches a step
  // Batch size ramp-up, if any; training continues at `from`, where step `from_step` begins.
  std::optional<core::BatchRamp> ramp = std::nullopt;
  std::int64_t from_step = 0;
  core::StepPlace from = {};

  std::int64_t micro_batch() const { return per_device * readers; }  // samples over all readers
  std::int64_t global_batch() const { return micro_batch() * accumulate; }
};

// The samples of one batch: `count` positions from `position` on.
struct BatchJob {
  std::int64_t epoch = 0, position = 0, count = 0;
};

// Plans the steps of training on epochs of `samples`: from the first step on if the batch does not
// grow or `from` lies on that plan; otherwise (the set had another size before) from `from_step`
// on. Throws core::RecipeError where an epoch has fewer samples than one global batch.
std::shared_ptr<const core::StepPlan> plan_steps(const ReaderSlice& slice, std::int64_t samples);

// Returns batch number `number` of a data-parallel rank in training: a micro-step of a step of the
// plan.
BatchJob train_job(const ReaderSlice& slice, const core::StepPlan& plan, std::int64_t number);
// Returns the first batch of a step.
std::int64_t first_job(const ReaderSlice& slice, const core::StepPlan& plan, std::int64_t step);

// Returns batch `number` of a data-parallel rank in an evaluation of `size` samples; nullopt after
// the last. Block i of per_device positions goes to reader i mod readers.
std::optional<BatchJob> eval_job(const ReaderSlice& slice, std::int64_t size, std::int64_t number);

}  // namespace scaletrain::data
