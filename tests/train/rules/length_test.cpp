#include "lib/train/rules/length.h"

#include <doctest/doctest.h>

namespace core = scaletrain::core;
using scaletrain::format::TrainState;
using scaletrain::recipe::Duration;
using scaletrain::train::describe_change;
using scaletrain::train::Length;
using scaletrain::train::plan_length;

namespace {

TrainState state_at(std::int64_t step, std::int64_t epoch, std::int64_t step_in_epoch) {
  TrainState state;
  state.step = step;
  state.epoch = epoch;
  state.step_in_epoch = step_in_epoch;
  return state;
}

constexpr Duration kFourEpochs{Duration::Unit::kEpochs, 4};

}  // namespace

TEST_CASE("a run of a set that keeps its size is as long at every step") {
  for (const TrainState& state : {state_at(0, 0, 0), state_at(25, 2, 5), state_at(40, 4, 0)}) {
    const Length length = plan_length(kFourEpochs, 10, state);
    CHECK(length.total_steps == 40);
    CHECK(length.epoch_shift == 0);
    CHECK(length.schedule_shift == 0);
  }
  CHECK(plan_length({Duration::Unit::kEpochs, 0.01}, 10, {}).total_steps == 1);
}

TEST_CASE("a set of another size from step 25 on leaves the end where the last epoch ends") {
  // Half of the third epoch of 10 steps is done: 5 of 8 steps, then one epoch of 8 more.
  const Length shorter = plan_length(kFourEpochs, 8, state_at(25, 2, 5));
  CHECK(shorter.total_steps == 25 + 3 + 8);
  CHECK(shorter.schedule_shift == 2 * 8 + 5 - 25);  // the schedule's place 21 of 32
  CHECK(shorter.epoch_shift == shorter.schedule_shift);
  const Length longer = plan_length(kFourEpochs, 12, state_at(25, 2, 5));
  CHECK(longer.total_steps == 25 + 7 + 12);
  // The same again later in the run that goes on.
  CHECK(plan_length(kFourEpochs, 8, state_at(30, 3, 2)).total_steps == 36);
  // Nothing is left of the last epoch.
  CHECK(plan_length(kFourEpochs, 8, state_at(39, 4, 0)).total_steps == 39);
}

TEST_CASE("a run of so many steps has so many, whatever an epoch is; its epochs shift") {
  const Length length = plan_length({Duration::Unit::kSteps, 30}, 8, state_at(25, 2, 5));
  CHECK(length.total_steps == 30);
  CHECK(length.schedule_shift == 0);
  CHECK(length.epoch_shift == 21 - 25);
}

TEST_CASE("with a batch size ramp a length and schedule in epochs follow the samples") {
  // 4, 4, 4, 8, 8, 12, ... of epochs of 30: five steps, then two each.
  const auto growing = std::make_shared<const core::StepPlan>(
      core::BatchSizes(12, core::BatchRamp{.start = 4, .increment = 4, .samples = 24}), 30);
  const Length epochs = plan_length(kFourEpochs, 2, state_at(6, 1, 1), growing);
  CHECK(epochs.total_steps == 5 + 3 * 2);
  CHECK(epochs.schedule_end() == 4 * 2);
  CHECK(epochs.place(3) == 1);
  CHECK(epochs.schedule_place(3) == 1);
  CHECK(epochs.step_at(2) == 5);
  const Length steps = plan_length({Duration::Unit::kSteps, 30}, 2, {}, growing);
  CHECK(steps.total_steps == 30);
  CHECK(steps.schedule_end() == 30);
  CHECK(steps.schedule_place(3) == 3);
  CHECK(steps.place(3) == 1);
}

TEST_CASE("a change is reported with both sizes, where it goes on and where it ends") {
  const TrainState state = state_at(25, 2, 5);
  CHECK(describe_change(plan_length(kFourEpochs, 8, state), state, 10) ==
        "an epoch has 8 steps from here on, had 10: the run goes on at step 6 of epoch 3 and ends "
        "after step 36");
}
