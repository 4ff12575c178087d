#include "lib/train/rules/early_stopping.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// "no_better" after each of these validations by `metric`.
std::string counts(const recipe::Recipe& recipe, const char* metric,
                   const std::vector<double>& values, format::TrainState& state) {
  std::string said;
  for (const double value : values) {
    ++state.step;
    count_validation(recipe, {{recipe::find_task(recipe.task)->measure(metric), value}}, state);
    said += fmt::format("{} ", state.no_better);
  }
  return said;
}

}  // namespace

TEST_CASE("validations that are no better are counted, from the best on") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({"early_stopping={\"patience\": 3}"});
  CHECK(counts(recipe, "top1", {0.5, 0.4, 0.5, 0.6, std::nan(""), 0.6}, state) == "0 1 2 0 1 2 ");
  CHECK(early_end(recipe, state).empty());
  CHECK(counts(recipe, "top1", {0.1}, state) == "3 ");
  CHECK(early_end(recipe, state) == "top-1 was no better than 60.00 % in 3 validations");
}

TEST_CASE("the loss gets better by falling, by more than min_delta") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe =
      tiny.recipe({R"(early_stopping={"metric": "loss", "min_delta": 0.25})"});
  CHECK(counts(recipe, "loss", {2, 1.8, 1.75, 1.5, 1.6}, state) == "0 1 2 0 1 ");
  CHECK(state.stopping_best == 1.5);
}

TEST_CASE("a step is counted once, also where a resume looks at it again") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({"early_stopping={\"patience\": 3}"});
  counts(recipe, "top1", {0.5, 0.4}, state);
  --state.step;
  CHECK(counts(recipe, "top1", {0.4}, state) == "1 ");
}

TEST_CASE("another early-stopping metric resets the count of validations") {
  const testing::TinyRun tiny;
  format::TrainState state;
  const recipe::Recipe recipe = tiny.recipe({"early_stopping={}"});
  counts(recipe, "top1", {0.5, 0.4}, state);
  keep_count_of(recipe, state);
  CHECK(state.no_better == 1);
  keep_count_of(tiny.recipe({"early_stopping={}", "ema={}"}), state);  // the ema's from here on
  CHECK(state.no_better == 0);
  CHECK(state.stopping_by.empty());
  CHECK(counts(tiny.recipe(), "top1", {0.5, 0.4}, state) == "0 0 ");  // it is not asked for
}

TEST_CASE("a new count of early stopping ignores earlier validations") {
  const testing::TinyRun tiny;
  format::TrainState state;
  counts(tiny.recipe({"early_stopping={}"}), "top1", {0.5, 0.4}, state);
  keep_count_of(tiny.recipe({"early_stopping={}", "ema={}"}), state);
  const format::TrainState none;
  CHECK(state.stopping_best == none.stopping_best);
  CHECK(state.stopping_step == none.stopping_step);
}

}  // namespace scaletrain::train
