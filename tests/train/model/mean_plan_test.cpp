#include "lib/train/model/mean_plan.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// Four, four, four, eight, eight samples a step and then twelve: an epoch of 30 has five steps and
// then two.
Length growing_length(bool in_epochs) {
  return {.steps_per_epoch = 2,
          .total_steps = 5 + 3 * 2,
          .growing = std::make_shared<const core::StepPlan>(
              core::BatchSizes(12, core::BatchRamp{.start = 4, .increment = 4, .samples = 24}), 30),
          .in_epochs = in_epochs};
}

}  // namespace

TEST_CASE("an equal mean begins after three quarters of the training unless the recipe says when") {
  const testing::TinyRun tiny;
  const Length length{.steps_per_epoch = 6, .total_steps = 24};
  const auto start = [&](const char* swa) {
    return plan_means(tiny.recipe({"epochs=4", "steps=null", swa}), length).at(0);
  };
  CHECK(start("swa={}").start == 18);
  CHECK(start("swa={}").every == 6);
  CHECK(start("swa.start={\"epochs\": 2}").start == 12);
  CHECK(start("swa.start={\"steps\": 5}").start == 5);
  CHECK(start("swa.every={\"epochs\": 0.01}").every == 1);
}

// Of a run that was resumed: what is counted in epochs, or as a share of the training, follows the
// place in the schedule, and a number of steps the steps done.
TEST_CASE("an equal mean's start follows the epochs of a set that has changed its size") {
  const testing::TinyRun tiny;
  const Length length{
      .steps_per_epoch = 6, .total_steps = 20, .epoch_shift = 3, .schedule_shift = 4};
  const auto start = [&](const char* swa) {
    return plan_means(tiny.recipe({"epochs=4", "steps=null", swa}), length).at(0).start;
  };
  CHECK(start("swa={}") == 14);  // 3/4 of 24, 4 steps before that place
  CHECK(start("swa.start={\"epochs\": 2}") == 9);
  CHECK(start("swa.start={\"steps\": 5}") == 5);
}

TEST_CASE("the means of a list of decays have their own names, and all of the recipe's keys") {
  const testing::TinyRun tiny;
  const auto plans =
      plan_means(tiny.recipe({R"(ema={"decay": [0.8, 0.5], "every": 3, "warmup": true})"}), {});
  REQUIRE(plans.size() == 2);
  CHECK(plans[0].name == "ema");
  CHECK(plans[1].name == "ema:0.5");
  CHECK(*plans[1].decay == 0.5);
  for (const optim::MeanPlan& plan : plans) {
    CHECK(plan.every == 3);
    CHECK(plan.warmup);
    CHECK(plan.start == 0);
  }
  CHECK(plan_means(tiny.recipe(), {}).empty());
}

TEST_CASE("while a batch grows an equal mean takes the weights at the ends of epochs") {
  const testing::TinyRun tiny;
  const auto due = [&](const char* swa, bool in_epochs = true) {
    const at::Tensor weight = at::zeros({1});
    const optim::Mean mean(
        plan_means(tiny.recipe({"epochs=4", "steps=null", swa}), growing_length(in_epochs)).at(0),
        units::full_shards({{"weight", weight}}));
    std::vector<int> steps;
    for (int step = 0; step < 11; ++step) {
      if (mean.is_due(step)) steps.push_back(step + 1);
    }
    return steps;
  };
  using Steps = std::vector<int>;
  CHECK(due(R"(swa={"start": {"epochs": 1}})") == Steps{5, 7, 9, 11});
  CHECK(due(R"(swa={"start": {"epochs": 0.5}, "every": {"epochs": 0.5}})") ==
        Steps{3, 5, 6, 7, 8, 9, 10, 11});
  CHECK(due(R"(swa={"start": {"epochs": 1}, "every": {"steps": 2}})") == Steps{5, 7, 9, 11});
  CHECK(due(R"(swa={"start": {"steps": 2}, "every": {"steps": 4}})") == Steps{2, 6, 10});
  CHECK(due("swa={}") == Steps{9, 11});                       // 3/4 of four epochs
  CHECK(due("swa={}", /*in_epochs=*/false) == Steps{8, 10});  // 3/4 of eleven steps
}

TEST_CASE("only an equal mean with a learning rate of its own leaves the schedule") {
  const testing::TinyRun tiny;
  const Length length{.steps_per_epoch = 6, .total_steps = 24};
  const auto lr = [&](const char* swa, const Length& where, std::int64_t step) {
    return averaging_lr(tiny.recipe({swa}), where, step,
                        [](std::int64_t at) { return 1 + 0.01 * static_cast<double>(at); });
  };
  const auto one = [](std::int64_t /*step*/) { return 1.0; };
  CHECK_FALSE(averaging_lr(tiny.recipe(), length, 0, one).has_value());
  CHECK_FALSE(lr("swa={}", length, 20).has_value());
  const char* const linear = R"(swa={"lr": 0.25, "start": {"steps": 5}, "anneal": {"epochs": 2},
                                     "anneal_strategy": "linear"})";
  CHECK(*lr(linear, length, 3) == doctest::Approx(1.03));
  CHECK(*lr(linear, length, 5) == doctest::Approx(1.05));
  CHECK(*lr(linear, length, 8) == doctest::Approx(0.25 * 0.25 + 0.75 * 1.05));  // 3 of 12 steps
  CHECK(*lr(linear, length, 17) == doctest::Approx(0.25));
  const char* const cosine = R"(swa={"lr": 0.25, "start": {"steps": 5}, "anneal": {"epochs": 2}})";
  CHECK(*lr(cosine, length, 8) ==
        doctest::Approx(1.05 + (0.25 - 1.05) * (1 - std::cos(std::numbers::pi / 4)) / 2));
  // While a batch grows two epochs from the first one's half on: five steps, by the data.
  const char* const by_data = R"(swa={"lr": 3, "start": {"epochs": 0.5}, "anneal": {"epochs": 2},
                                      "anneal_strategy": "linear"})";
  const Length growing = growing_length(true);
  CHECK(*lr(by_data, growing, 3) == doctest::Approx(1.03));
  CHECK(*lr(by_data, growing, 5) == doctest::Approx(3 * 0.25 + 1.03 * 0.75));
  CHECK(*lr(by_data, growing, 7) == doctest::Approx(3 * 0.75 + 1.03 * 0.25));
  CHECK(*lr(by_data, growing, 8) == doctest::Approx(3));
  const char* const by_steps = R"(swa={"lr": 3, "start": {"epochs": 0.5}, "anneal": {"steps": 4},
                                       "anneal_strategy": "linear"})";
  CHECK(*lr(by_steps, growing, 5) == doctest::Approx(3 * 0.5 + 1.03 * 0.5));
}

TEST_CASE("a model of somebody's own with BatchNorm has no equal mean") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({"swa={}"});
  const NamedTensors plain{{"positions", at::zeros({1})}};
  const NamedTensors statistics{{"bn1.running_mean", at::zeros({1})}};
  CHECK_NOTHROW(check_means(recipe, plain));
  CHECK_NOTHROW(check_means(tiny.recipe({"ema={}"}), statistics));
  CHECK(test::message_of<core::RecipeError>([&] { check_means(recipe, statistics); }) ==
        "/swa: mlp has BatchNorm statistics (bn1.running_mean), and averaged weights would need "
        "their own\n"
        "  use /ema, or a model without BatchNorm");
}

TEST_CASE("an equal mean has begun with its first update, a running one at once") {
  format::TrainState state;
  CHECK(has_begun({.name = "ema", .decay = 0.9}, state));
  CHECK_FALSE(has_begun({.name = "swa"}, state));
  state.swa_updates = 1;
  CHECK(has_begun({.name = "swa"}, state));
}

}  // namespace scaletrain::train
