#include "lib/data/order/batch_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/core/error.h"

namespace scaletrain::data {

// Micro-step j of step k: the block of per_device positions at k G + (j n + r) b.
BatchJob train_job(const ReaderSlice& slice, std::int64_t steps, std::int64_t number) {
  const std::int64_t micro_step = number % slice.accumulate;
  const std::int64_t step = number / slice.accumulate;
  const std::int64_t block = micro_step * slice.readers + slice.reader;
  return {step / steps, step % steps * slice.global_batch() + block * slice.per_device,
          slice.per_device};
}

std::optional<BatchJob> eval_job(const ReaderSlice& slice, std::int64_t size, std::int64_t number) {
  const std::int64_t begin = (number * slice.readers + slice.reader) * slice.per_device;
  if (begin >= size) return std::nullopt;
  return BatchJob{0, begin, std::min(slice.per_device, size - begin)};
}

std::int64_t steps_of_epoch(const ReaderSlice& slice, std::int64_t samples) {
  const std::int64_t steps = samples / slice.global_batch();
  if (steps > 0) return steps;
  throw core::RecipeError(
      "/batch",
      fmt::format("a global batch of {} samples (per_device {} x accumulate {} x {} ranks) is "
                  "more than the {} samples of an epoch",
                  slice.global_batch(), slice.per_device, slice.accumulate, slice.readers, samples),
      "lower per_device or accumulate, use fewer ranks, or add data");
}

}  // namespace scaletrain::data
