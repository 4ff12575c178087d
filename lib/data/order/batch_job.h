// Which positions of an epoch make which batch of which reader.
#pragma once

#include <cstdint>
#include <optional>

namespace scaletrain::data {

// Which part of every global batch a rank reads: one that has data coordinate `reader` of `readers`
// (lib/core/mesh_plan.h). Ranks with the same one read the same samples.
struct ReaderSlice {
  int reader = 0;
  int readers = 1;
  std::int64_t per_device = 1;  // b: samples of a micro-batch
  std::int64_t accumulate = 1;  // micro-batches a step

  std::int64_t global_batch() const { return per_device * accumulate * readers; }
};

// The samples of one batch: `count` positions from `position` on.
struct BatchJob {
  std::int64_t epoch = 0, position = 0, count = 0;
};

// Batch number `number` of a reader's training, through epochs of `steps` steps: micro-step
// number mod accumulate of a step.
BatchJob train_job(const ReaderSlice& slice, std::int64_t steps, std::int64_t number);

// Batch number `number` of a reader's evaluation of `size` samples, nullopt behind the last: block
// i of per_device positions goes to reader i mod n.
std::optional<BatchJob> eval_job(const ReaderSlice& slice, std::int64_t size, std::int64_t number);

// Steps of an epoch of `samples`. Throws core::RecipeError where they are fewer than one global
// batch.
std::int64_t steps_of_epoch(const ReaderSlice& slice, std::int64_t samples);

}  // namespace scaletrain::data
