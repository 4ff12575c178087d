#include "lib/train/rules/cadence.h"

#include <doctest/doctest.h>

#include <vector>

using scaletrain::recipe::Duration;
using scaletrain::train::Cadence;

namespace {

// The steps of 1..20 after which something is due, with 8 steps an epoch and 9 seconds a step.
std::vector<int> due_steps(Duration::Unit unit, double value, std::int64_t epoch_shift = 0) {
  const Cadence cadence({unit, value}, {.steps_per_epoch = 8, .epoch_shift = epoch_shift});
  std::vector<int> result;
  for (int step = 1; step <= 20; ++step) {
    if (cadence.due(step, 9.0 * (step - 1), 9.0 * step)) result.push_back(step);
  }
  return result;
}

}  // namespace

TEST_CASE("every so many steps") {
  CHECK(due_steps(Duration::Unit::kSteps, 7) == std::vector<int>{7, 14});
}

TEST_CASE("the end of an epoch follows the present number of steps after a change of the data") {
  // Step 3 stands for place 1 of its epoch of 8, so that it ends with step 10.
  CHECK(due_steps(Duration::Unit::kEpochs, 1, -2) == std::vector<int>{2, 10, 18});
  CHECK(due_steps(Duration::Unit::kSteps, 7, -2) == std::vector<int>{7, 14});
}

TEST_CASE("every so many epochs, also parts of one") {
  CHECK(due_steps(Duration::Unit::kEpochs, 1) == std::vector<int>{8, 16});
  CHECK(due_steps(Duration::Unit::kEpochs, 0.5) == std::vector<int>{4, 8, 12, 16, 20});
}

TEST_CASE("every so many minutes of training: with the step that passes the minute") {
  // 60 s pass in step 7 (54..63 s), 120 s in step 14 (117..126 s), 180 s at step 20.
  CHECK(due_steps(Duration::Unit::kMinutes, 1) == std::vector<int>{7, 14, 20});
}
