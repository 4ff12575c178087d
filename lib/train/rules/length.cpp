#include "lib/train/rules/length.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/optim/schedule.h"

namespace scaletrain::train {

Length plan_length(const recipe::Duration& length, std::int64_t steps_per_epoch,
                   const format::TrainState& state, std::shared_ptr<const core::StepPlan> growing) {
  Length result;
  result.growing = std::move(growing);
  result.in_epochs = length.unit == recipe::Duration::Unit::kEpochs;
  result.steps_per_epoch = steps_per_epoch;
  const std::int64_t scheduled =
      std::max<std::int64_t>(1, optim::duration_steps(length, steps_per_epoch));
  if (result.growing) {
    result.total_steps = result.in_epochs ? result.step_at(scheduled) : scheduled;
    return result;
  }
  result.epoch_shift = state.epoch * steps_per_epoch + state.step_in_epoch - state.step;
  if (result.in_epochs) result.schedule_shift = result.epoch_shift;
  result.total_steps = scheduled - result.schedule_shift;
  return result;
}

std::string describe_change(const Length& length, const format::TrainState& state,
                            std::int64_t before) {
  return fmt::format(
      "an epoch has {} steps from here on, had {}: the run goes on at step {} of epoch {} and ends "
      "after step {}",
      length.steps_per_epoch, before, state.step_in_epoch + 1, state.epoch + 1, length.total_steps);
}

}  // namespace scaletrain::train
