#include "lib/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

#include "lib/optim/decay.h"
#include "lib/recipe/catalog/lists.h"

namespace {

using namespace scaletrain;
using recipe::Duration;

constexpr optim::ScheduleSpan kSpan{.total_steps = 12, .steps_per_epoch = 4};

recipe::Schedule after_warmup(std::string name,
                              std::map<std::string, recipe::Component::Value> options = {}) {
  recipe::Schedule schedule;
  schedule.warmup = Duration{Duration::Unit::kEpochs, 1};
  schedule.decay.name = std::move(name);
  schedule.decay.options = std::move(options);
  return schedule;
}

TEST_CASE("warmup rises in equal parts and its last step has the peak") {
  const optim::Schedule schedule(after_warmup("constant"), 2.0, kSpan);
  CHECK(schedule.lr(0) == doctest::Approx(0.5));  // 2 * 1/4
  CHECK(schedule.lr(2) == doctest::Approx(1.5));
  CHECK(schedule.lr(3) == doctest::Approx(2.0));
  CHECK(schedule.lr(4) == doctest::Approx(2.0));
  CHECK(schedule.lr(500) == doctest::Approx(2.0));
}

TEST_CASE("without warmup the first step has the peak") {
  recipe::Schedule config = after_warmup("cosine", {{"final_factor", 0.0}});
  config.warmup.reset();
  CHECK(optim::Schedule(config, 2.0, kSpan).lr(0) == doctest::Approx(2.0));
}

TEST_CASE("cosine ends at its final factor and stays there") {
  const optim::Schedule schedule(after_warmup("cosine", {{"final_factor", 0.1}}), 1.0, kSpan);
  CHECK(schedule.lr(4) == doctest::Approx(1.0));
  CHECK(schedule.lr(8) == doctest::Approx(0.55));  // half way down: (1.0 + 0.1) / 2
  CHECK(schedule.lr(12) == doctest::Approx(0.1));
  CHECK(schedule.lr(500) == doctest::Approx(0.1));
}

TEST_CASE("step multiplies by gamma every so many epochs") {
  const optim::Schedule schedule(after_warmup("step", {{"every_epochs", 0.5}, {"gamma", 0.1}}), 1.0,
                                 kSpan);
  CHECK(schedule.lr(5) == doctest::Approx(1.0));
  CHECK(schedule.lr(6) == doctest::Approx(0.1));  // half an epoch, two steps, after the warmup
  CHECK(schedule.lr(8) == doctest::Approx(0.01));
}

TEST_CASE("multi_step multiplies by gamma at epochs from the beginning of training") {
  const optim::Schedule schedule(
      after_warmup("multi_step", {{"milestones", std::vector<double>{2.5, 1.5}}, {"gamma", 0.1}}),
      1.0, kSpan);
  CHECK(schedule.lr(5) == doctest::Approx(1.0));
  CHECK(schedule.lr(6) == doctest::Approx(0.1));  // an epoch and a half, the warmup's among it
  CHECK(schedule.lr(9) == doctest::Approx(0.1));
  CHECK(schedule.lr(10) == doctest::Approx(0.01));
}

TEST_CASE("polynomial falls with its power to its final factor") {
  const auto config = after_warmup("polynomial", {{"power", 2.0}, {"final_factor", 0.2}});
  const optim::Schedule schedule(config, 1.0, kSpan);
  CHECK(schedule.lr(8) == doctest::Approx(0.4));  // 0.2 + 0.8 * (1/2)^2
  CHECK(schedule.lr(12) == doctest::Approx(0.2));
  CHECK(schedule.lr(13) == doctest::Approx(0.2));
}

TEST_CASE("a warmup rises from where the recipe says, in a line or by one factor") {
  recipe::Schedule config = after_warmup("constant");
  config.warmup_from = 0.0625;
  const optim::Schedule line(config, 2.0, kSpan);
  CHECK(line.lr(0) == doctest::Approx(2 * (0.0625 + 0.9375 / 4)));
  CHECK(line.lr(3) == doctest::Approx(2.0));
  config.warmup_shape = "exponential";
  const optim::Schedule curve(config, 2.0, kSpan);
  CHECK(curve.lr(0) == doctest::Approx(0.25));  // 0.0625^(3/4) = 1/8
  CHECK(curve.lr(1) == doctest::Approx(0.5));
  CHECK(curve.lr(3) == doctest::Approx(2.0));
}

TEST_CASE("with \"by\": \"epoch\" the learning rate is constant within an epoch") {
  recipe::Schedule config = after_warmup("linear", {{"final_factor", 0.0}});
  config.by = "epoch";
  const optim::Schedule schedule(config, 1.0, kSpan);
  for (const std::int64_t step : {4, 7}) CHECK(schedule.lr(step) == doctest::Approx(1.0));
  for (const std::int64_t step : {8, 11}) CHECK(schedule.lr(step) == doctest::Approx(0.5));
  config.warmup = Duration{Duration::Unit::kSteps, 2};  // ends within an epoch
  CHECK(optim::Schedule(config, 1.0, kSpan).lr(3) == doctest::Approx(1.0));
  CHECK(optim::Schedule(config, 1.0, kSpan).lr(4) == doctest::Approx(0.8));
}

TEST_CASE("a cooldown keeps what the decay ended with") {
  recipe::Schedule config = after_warmup("exponential", {{"gamma", 0.5}});
  config.cooldown = Duration{Duration::Unit::kEpochs, 1};
  const optim::Schedule schedule(config, 1.0, kSpan);
  CHECK(schedule.lr(6) == doctest::Approx(std::sqrt(0.5)));
  for (const std::int64_t step : {8, 9, 11}) CHECK(schedule.lr(step) == doctest::Approx(0.5));
  CHECK(schedule.lr(7) > 0.5);
}

TEST_CASE("a warmup as long as training leaves nothing to decay") {
  recipe::Schedule config = after_warmup("cosine", {{"final_factor", 0.0}});
  config.warmup = Duration{Duration::Unit::kSteps, 12};
  CHECK(optim::Schedule(config, 1.0, kSpan).lr(11) == doctest::Approx(1.0));
  for (const std::int64_t step : {0, 1}) CHECK(optim::progress(step, {.steps = 0}) == 1);
}

TEST_CASE("durations become steps, rounded to the nearest") {
  CHECK(optim::duration_steps({Duration::Unit::kSteps, 7}, 4) == 7);
  CHECK(optim::duration_steps({Duration::Unit::kEpochs, 0.3}, 4) == 1);  // 1.2
  CHECK(optim::duration_steps({Duration::Unit::kEpochs, 0.1}, 4) == 0);  // 0.4
  CHECK_THROWS_WITH_AS(optim::duration_steps({Duration::Unit::kMinutes, 3}, 4),
                       "a length in minutes has no number of steps", std::logic_error);
}

TEST_CASE("every row of schedules.def makes a decay from at most 1 to no more") {
  for (const recipe::Row& row : recipe::schedules().rows) {
    CAPTURE(row.name);
    recipe::Component config;
    recipe::choose(config, row);
    const optim::Decay decay = optim::make_decay(config, {.steps = 10, .steps_per_epoch = 5});
    CHECK(decay(0) == doctest::Approx(row.name == "one_cycle" ? 1.0 / 25 : 1.0));
    CHECK(decay(10) >= 0);
    CHECK(decay(10) <= 1);
  }
}

}  // namespace
