// Length of a run in optimizer steps, and the place of a step in it.
//
// A run with a length in epochs ends with its last epoch, and its schedule follows the position in
// the epochs. While the training set keeps its size, that position is the number of steps done;
// after a resume with another size it is shifted by a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/core/plan/step_plan.h"
#include "lib/format/checkpoint/train_state.h"
#include "lib/recipe/catalog/values.h"

namespace scaletrain::train {

struct Length {
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;     // optimizer steps done when training ends
  std::int64_t epoch_shift = 0;     // shift from steps done to steps in epochs of the present size
  std::int64_t schedule_shift = 0;  // shift from steps done to the place in the schedule
  // Step plan of a growing batch, whose first epochs have more steps than steps_per_epoch;
  // otherwise nullptr. Then a length in epochs and its schedule follow the data: places are those
  // of a run whose batch does not grow.
  std::shared_ptr<const core::StepPlan> growing = nullptr;
  bool in_epochs = false;  // the length was given in epochs

  // Returns the place of step `step` (from 0) in epochs of steps_per_epoch steps; then the first
  // step there.
  std::int64_t place(std::int64_t step) const {
    return growing ? growing->spread(step) : step + epoch_shift;
  }
  std::int64_t step_at(std::int64_t place) const {
    return growing ? growing->step_at(place) : place - epoch_shift;
  }
  // Returns the place of `step` in the learning-rate schedule; then the schedule's end.
  std::int64_t schedule_place(std::int64_t step) const {
    return growing && in_epochs ? place(step) : step + schedule_shift;
  }
  std::int64_t schedule_end() const { return schedule_place(total_steps); }
};

// Plans the length of a run that stands at `state`.
Length plan_length(const recipe::Duration& length, std::int64_t steps_per_epoch,
                   const format::TrainState& state,
                   std::shared_ptr<const core::StepPlan> growing = nullptr);

// Describes the effect of a changed training set on a run resumed at `state`, whose epochs had
// `before` steps: "an epoch has 8 steps from here on, had 10: the run goes on at step 6 of epoch 3
// and ends after step 36".
std::string describe_change(const Length& length, const format::TrainState& state,
                            std::int64_t before);

}  // namespace scaletrain::train
