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
