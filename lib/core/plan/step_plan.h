// Position in the epochs where each step of a training begins, as a pure function of the step.
//
// An epoch ends when fewer samples are left than the next step's batch needs; these last samples
// are dropped. During a batch size ramp-up (lib/core/plan/batch_sizes.h) an epoch therefore has
// more steps than later.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/core/plan/batch_sizes.h"

namespace scaletrain::core {

// Position of one step, all from 0.
struct StepPlace {
  std::int64_t epoch = 0, step_in_epoch = 0;
  std::int64_t position = 0;  // position of its first sample in the epoch
  bool operator==(const StepPlace&) const = default;
};

class StepPlan {
 public:
  // Plans epochs of `samples` samples, at least the largest batch. `from`: position of `step`, at
  // which the plan starts.
  StepPlan(BatchSizes sizes, std::int64_t samples, std::int64_t step = 0, StepPlace from = {});

  const BatchSizes& sizes() const { return sizes_; }
  // Returns the number of steps in an epoch at the full batch size, which is the smallest number.
  std::int64_t steps_per_epoch() const { return samples_ / sizes_.global(); }

  StepPlace at(std::int64_t step) const;
  // Returns the first step of an epoch.
  std::int64_t first_step(std::int64_t epoch) const;
  // Returns the step that trains on `position` of `epoch`.
  std::int64_t step_of(std::int64_t epoch, std::int64_t position) const;

  // Maps a step to a plan with steps_per_epoch() steps in every epoch, for schedules in epochs. The
  // result grows by 0 or 1 with each step and is exact at the start of each epoch.
  std::int64_t spread(std::int64_t step) const;
  // Returns the first step that spread() maps to `spread`.
  std::int64_t step_at(std::int64_t spread) const;

 private:
  // Starts at `step`, which begins at `place` or with the next epoch; ends at the next row.
  struct Row {
    std::int64_t step = 0;
    StepPlace place;
    std::int64_t batch = 0;
  };
  StepPlace place_in(const Row& row, std::int64_t step) const;
  std::int64_t steps_left(const Row& row) const;  // steps left in the row's epoch
  std::int64_t steps_of(std::int64_t epoch) const;

  BatchSizes sizes_;
  std::int64_t samples_;
  std::vector<Row> rows_;
};

}  // namespace scaletrain::core
