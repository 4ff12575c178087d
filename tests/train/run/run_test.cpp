#include "lib/train/run/run.h"

#include <doctest/doctest.h>

#include "tests/train/run/run_support.h"

namespace scaletrain::train {

TEST_CASE("a run's learning rate follows its place in the schedule, not the steps done") {
  const testing::TinyRun tiny;
  Run run;
  run.recipe = tiny.recipe({"schedule={\"warmup\":{\"steps\":4}}"});
  run.length = {.steps_per_epoch = 6, .total_steps = 8};
  run.learner = build_learner(run.recipe, at::kCPU, run.length, 4);
  run.state.step = 1;
  CHECK(run.lr() == doctest::Approx(0.05));  // 2/4 of the way up to 0.1
  run.length.schedule_shift = 1;
  CHECK(run.lr() == doctest::Approx(0.075));
}

TEST_CASE("an equal mean's learning rate leaves the schedule where that was at its start") {
  const testing::TinyRun tiny;
  Run run;
  run.recipe = tiny.recipe({R"(schedule={"decay": "linear"})",
                            R"(swa={"lr": 0.5, "start": {"steps": 4}, "anneal": {"steps": 2},
                                    "anneal_strategy": "linear"})"});
  run.length = {.steps_per_epoch = 6, .total_steps = 8};
  run.learner = build_learner(run.recipe, at::kCPU, run.length, 4);
  const auto lr_at = [&](std::int64_t step) {
    run.state.step = step;
    return run.lr();
  };
  CHECK(lr_at(2) == doctest::Approx(0.075));  // 0.1 * (1 - 2/8)
  CHECK(lr_at(4) == doctest::Approx(0.05));
  CHECK(lr_at(5) == doctest::Approx(0.275));  // half way from 0.05 to 0.5
  CHECK(lr_at(7) == doctest::Approx(0.5));
}

TEST_CASE("a run's weight decay goes to its end over the whole schedule") {
  const testing::TinyRun tiny;
  Run run;
  run.recipe = tiny.recipe();
  run.length = {.steps_per_epoch = 6, .total_steps = 6, .schedule_shift = 2};
  CHECK_FALSE(run.weight_decay().has_value());
  run.recipe = tiny.recipe({"optimizer.weight_decay_end=0.4"});
  run.state.step = 2;
  CHECK(*run.weight_decay() == doctest::Approx(0.2));  // 4 of 8 steps from 0 to 0.4
}

TEST_CASE("checkpoints lie in the run's folder") {
  Run run;
  run.recipe.output = "runs/tiny";
  CHECK(run.checkpoints() == "runs/tiny/checkpoints");
}

}  // namespace scaletrain::train
