#include "lib/train/mean_plan.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {

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

TEST_CASE("only an equal mean with a learning rate of its own leaves the schedule") {
  const testing::TinyRun tiny;
  const Length length{.steps_per_epoch = 6, .total_steps = 24};
  CHECK_FALSE(plan_swa_lr(tiny.recipe(), length).has_value());
  CHECK_FALSE(plan_swa_lr(tiny.recipe({"swa={}"}), length).has_value());
  for (const bool is_linear : {false, true}) {
    const auto plan = plan_swa_lr(
        tiny.recipe({R"(swa={"lr": 0.25, "start": {"steps": 5}, "anneal": {"epochs": 2}})",
                     is_linear ? "swa.anneal_strategy=linear" : "swa.anneal_strategy=cos"}),
        length);
    REQUIRE(plan.has_value());
    CHECK(plan->lr == 0.25);
    CHECK(plan->start == 5);
    CHECK(plan->anneal == 12);
    CHECK(plan->is_linear == is_linear);
  }
}

TEST_CASE("a model of somebody's own with BatchNorm has no equal mean") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({"swa={}"});
  const NamedTensors plain{{"positions", at::zeros({1})}};
  const NamedTensors statistics{{"bn1.running_mean", at::zeros({1})}};
  CHECK_NOTHROW(check_means(recipe, plain));
  CHECK_NOTHROW(check_means(tiny.recipe({"ema={}"}), statistics));
  CHECK(test::message_of<core::RecipeError>([&] { check_means(recipe, statistics); }) ==
        "/swa: mlp has BatchNorm statistics (bn1.running_mean), and a mean needs its own\n"
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
