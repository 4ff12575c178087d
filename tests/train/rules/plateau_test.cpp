#include "lib/train/rules/plateau.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/train/run/run_support.h"

// tests/end_to_end/plateau_test.py compares a run with PyTorch's scheduler.
namespace scaletrain::train {
namespace {

// The learning rate, of 1, after each of these validations by `metric`.
std::string rates(const recipe::Recipe& recipe, const char* metric,
                  const std::vector<double>& values, format::TrainState& state) {
  std::string said;
  for (const double value : values) {
    ++state.step;
    look_for_plateau(recipe, {{recipe::find_task(recipe.task)->measure(metric), value}}, state);
    said += fmt::format("{:g} ", lowered_lr(recipe, state, 1));
  }
  return said;
}

}  // namespace

TEST_CASE("the learning rate drops after more than patience validations that are no better") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({R"(schedule.plateau={"patience": 1, "factor": 0.5})"});
  CHECK(rates(recipe, "top1", {0.5, 0.5, 0.5, 0.5, 0.5, 0.6, 0.5}, state) ==
        "1 1 0.5 0.5 0.25 0.25 0.25 ");
}

TEST_CASE(
    "what is better by less than the threshold is no better; after a drop some are not counted") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe(
      {R"(schedule.plateau={"metric": "loss", "patience": 0, "threshold": 0.25, "cooldown": 2})"});
  // 1.6 is no better than 2 * 0.75.
  CHECK(rates(recipe, "loss", {2, 1.6, 1.6, 1.6, 1.6, 1.4, 1.4}, state) ==
        "1 0.1 0.1 0.1 0.01 0.01 0.01 ");
}

TEST_CASE("it falls no lower than min_lr, and a schedule that is lower already stays") {
  const testing::TinyRun tiny;
  format::TrainState state;
  state.plateau_drops = 2;
  const recipe::Recipe recipe = tiny.recipe({"schedule.plateau={\"min_lr\": 0.125}"});
  CHECK(lowered_lr(recipe, state, 1) == 0.125);
  CHECK(lowered_lr(recipe, state, 100) == doctest::Approx(1));
  CHECK(lowered_lr(recipe, state, 0.1) == 0.1);
  CHECK(lowered_lr(tiny.recipe(), state, 1) == 1);
}

TEST_CASE(
    "another plateau metric resets the count and keeps the drops; without a plateau they are "
    "removed") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({"schedule.plateau={\"patience\": 0}"});
  rates(recipe, "top1", {0.5, 0.5}, state);
  keep_plateau_of(recipe, state);
  CHECK(state.plateau_by == "top1");
  keep_plateau_of(tiny.recipe({"schedule.plateau={\"metric\": \"loss\"}"}), state);
  CHECK(state.plateau_by.empty());
  CHECK(state.plateau_drops == 1);
  keep_plateau_of(tiny.recipe(), state);
  CHECK(state.plateau_drops == 0);
}

TEST_CASE("a step is counted once, also where a resume looks at it again") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({"schedule.plateau={\"patience\": 1}"});
  rates(recipe, "top1", {0.5, 0.4}, state);
  --state.step;
  CHECK(rates(recipe, "top1", {0.4, 0.3}, state) == "1 0.1 ");
}

TEST_CASE("what is better begins the count again, and is the best from then on") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({"schedule.plateau={\"patience\": 1}"});
  CHECK(rates(recipe, "top1", {0.5, 0.4, 0.6, 0.5, 0.5}, state) == "1 1 1 1 0.1 ");
  CHECK(state.plateau_best == 0.6);
}

TEST_CASE("what is counted by another measure knows nothing of what was before") {
  const testing::TinyRun tiny;
  format::TrainState state;
  rates(tiny.recipe({R"(schedule.plateau={"patience": 0, "cooldown": 3})"}), "top1",
        {0.5, 0.4, 0.3}, state);
  state.plateau_bad = 2;
  keep_plateau_of(tiny.recipe({"schedule.plateau={\"metric\": \"loss\"}"}), state);
  const format::TrainState none;
  CHECK(state.plateau_best == none.plateau_best);
  CHECK(state.plateau_step == none.plateau_step);
  CHECK(state.plateau_bad == none.plateau_bad);
  CHECK(state.plateau_cooldown == none.plateau_cooldown);
}

}  // namespace scaletrain::train
