#include "launcher/plan/run_cost.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using doctest::Approx;

constexpr RunRates kRates{.steps = 7200,
                          .step_s = 0.5,
                          .devices = 16,
                          .global_batch = 64,
                          .sample_bytes = 1000,
                          .watts = 700,
                          .price = 2.5};

}  // namespace

TEST_CASE("an hour on 16 devices is 16 device hours, with their energy and their price") {
  const RunCost cost = predict_cost(kRates);
  CHECK(cost.seconds == Approx(3600));
  CHECK(cost.device_hours == Approx(16));
  CHECK(cost.kwh == Approx(16 * 0.7));
  CHECK(cost.money.value_or(0) == Approx(40));
  CHECK(cost.samples_per_s == Approx(128));
  CHECK(cost.data_bytes_per_s == Approx(128'000));
}

TEST_CASE("energy has a price of its own, and without prices there is no cost") {
  RunRates rates = kRates;
  rates.price_of_kwh = 0.25;
  CHECK(predict_cost(rates).money.value_or(0) == Approx(40 + 2.8));
  rates.price.reset();
  CHECK(predict_cost(rates).money.value_or(0) == Approx(2.8));
  rates.price_of_kwh.reset();
  CHECK(!predict_cost(rates).money);
}

TEST_CASE("nothing is divided by a step of no time") {
  CHECK(predict_cost({.steps = 10, .global_batch = 4}).samples_per_s == 0);
}

TEST_CASE("a save is written at the storage's rate, in the interval of Young and Daly") {
  const SavePlan saves = plan_saves(6e9, 2e9, 2, 86'400);
  CHECK(saves.write_s == Approx(3));
  // Young: sqrt(2 x 2 s x 86,400 s) = 588 s; Daly's correction is below one percent.
  CHECK(saves.interval_s == Approx(588).epsilon(0.01));
}

}  // namespace scaletrain::launcher
