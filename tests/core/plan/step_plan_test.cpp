#include "lib/core/plan/step_plan.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using scaletrain::core::BatchRamp;
using scaletrain::core::BatchSizes;
using scaletrain::core::StepPlace;
using scaletrain::core::StepPlan;

namespace {

// 4, 4, 4, 8, 8, 12, 12, ... samples.
const BatchSizes kGrowing(12, BatchRamp{.start = 4, .increment = 4, .samples = 24});

}  // namespace

TEST_CASE("steps of one size have whole epochs, one like the other") {
  const StepPlan plan(BatchSizes(12), 30);
  CHECK(plan.steps_per_epoch() == 2);
  for (std::int64_t step = 0; step < 10; ++step) {
    CHECK(plan.at(step) == StepPlace{step / 2, step % 2, step % 2 * 12});
    CHECK(plan.spread(step) == step);
    CHECK(plan.step_at(step) == step);
    CHECK(plan.step_of(step / 2, step % 2 * 12 + 11) == step);
    CHECK(plan.first_step(step) == 2 * step);
  }
}

TEST_CASE("an epoch ends where the next batch of a growing one does not fit") {
  const StepPlan plan(kGrowing, 30);
  const std::vector<StepPlace> expected{{0, 0, 0},  {0, 1, 4},  {0, 2, 8}, {0, 3, 12},
                                        {0, 4, 20},  // 28 of 30
                                        {1, 0, 0},  {1, 1, 12}, {2, 0, 0}, {2, 1, 12}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i);
    CHECK(plan.at(step) == expected[i]);
    CHECK(plan.step_of(expected[i].epoch, expected[i].position) == step);
    const std::int64_t last = expected[i].position + plan.sizes().of_step(step) - 1;
    CHECK(plan.step_of(expected[i].epoch, last) == step);
  }
  CHECK(plan.first_step(0) == 0);
  CHECK(plan.first_step(1) == 5);
  CHECK(plan.first_step(2) == 7);
  CHECK(plan.first_step(100) == 203);
}

TEST_CASE("what is counted in epochs follows the data while a batch grows") {
  const StepPlan plan(kGrowing, 30);
  // Five steps of the first epoch are two places: 0, 2/5, 4/5, 6/5, 8/5.
  const std::vector<std::int64_t> expected{0, 0, 0, 1, 1, 2, 3, 4, 5};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(plan.spread(static_cast<std::int64_t>(i)) == expected[i]);
  }
  CHECK(plan.step_at(0) == 0);
  CHECK(plan.step_at(1) == 3);
  CHECK(plan.step_at(2) == 5);
  CHECK(plan.step_at(7) == 10);
  for (std::int64_t place = 0; place < 40; ++place)
    CHECK(plan.spread(plan.step_at(place)) == place);
}

TEST_CASE("a plan of any size has each place once, and goes back to its steps") {
  for (const std::int64_t samples : {12, 13, 25, 47, 100}) {
    CAPTURE(samples);
    const StepPlan plan(kGrowing, samples);
    std::int64_t epoch = 0, position = 0, in_epoch = 0;
    for (std::int64_t step = 0; step < 200; ++step) {
      const std::int64_t batch = plan.sizes().of_step(step);
      if (position + batch > samples) {
        ++epoch;
        position = in_epoch = 0;
      }
      REQUIRE(plan.at(step) == StepPlace{epoch, in_epoch, position});
      REQUIRE(plan.step_of(epoch, position) == step);
      REQUIRE(plan.step_of(epoch, position + batch - 1) == step);
      REQUIRE(plan.first_step(epoch) == step - in_epoch);
      REQUIRE(plan.spread(step) / plan.steps_per_epoch() == epoch);
      position += batch;
      ++in_epoch;
    }
  }
}

TEST_CASE("a plan that begins later holds from there on") {
  const StepPlan plan(kGrowing, 20, 4, {.epoch = 0, .step_in_epoch = 4, .position = 20});
  CHECK(plan.at(4) == StepPlace{1, 0, 0});  // of the 30 that were there, 20 are left: all trained
  CHECK(plan.at(5) == StepPlace{1, 1, 8});
  CHECK(plan.at(6) == StepPlace{2, 0, 0});
  CHECK(plan.first_step(0) == 0);
  const StepPlan middle(kGrowing, 40, 4, {.epoch = 3, .step_in_epoch = 1, .position = 9});
  CHECK(middle.at(4) == StepPlace{3, 1, 9});
  CHECK(middle.at(5) == StepPlace{3, 2, 17});
  CHECK(middle.at(6) == StepPlace{4, 0, 0});  // 11 are left
  CHECK(middle.first_step(3) == 3);
  CHECK(middle.first_step(1) == 3 - 2 * 3);
}
