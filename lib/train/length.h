// How long a run is, in optimizer steps, and where a step stands in it.
//
// A run of so many epochs ends where its last epoch does, and its schedule follows the epoch and
// the position in it. As long as the training set keeps its size, that is the number of steps done;
// of a run that was resumed with another size it is that number and a constant.
#pragma once

#include <cstdint>
#include <string>

#include "lib/format/train_state.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::train {

struct Length {
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;     // optimizer steps done when training ends
  std::int64_t epoch_shift = 0;     // steps done and this: so many steps of epochs as they are now
  std::int64_t schedule_shift = 0;  // steps done and this: the place in the schedule
};

// Of a run that stands at `state`.
Length plan_length(const recipe::Duration& length, std::int64_t steps_per_epoch,
                   const format::TrainState& state);

// What another size of the set changes for a run that goes on at `state`, where an epoch had
// `before` steps: "an epoch has 8 steps from here on, had 10: the run goes on at step 6 of epoch 3
// and ends after step 36".
std::string describe_change(const Length& length, const format::TrainState& state,
                            std::int64_t before);

}  // namespace scaletrain::train
