#include "lib/core/plan/save_interval.h"

#include <doctest/doctest.h>

#include <initializer_list>

using doctest::Approx;
using scaletrain::core::best_interval;

namespace {

// Of an hour, the share that is lost with saves every `interval`: to saves, and to work and saves
// that a failure makes undone, half an interval of them on average.
double lost(double interval, double cost, double mtbf) {
  return cost / interval + (interval + cost) / 2 / mtbf;
}

}  // namespace

TEST_CASE("the interval is the best within a percent where failures are rare") {
  for (const double cost : {0.05, 1.0, 30.0}) {
    const double mtbf = 24 * 3600.0, interval = best_interval(cost, mtbf);
    CAPTURE(cost);
    CHECK(lost(interval, cost, mtbf) <= 1.01 * lost(0.9 * interval, cost, mtbf));
    CHECK(lost(interval, cost, mtbf) <= 1.01 * lost(1.1 * interval, cost, mtbf));
  }
}

TEST_CASE(
    "the interval is Daly's: without saves' cost none, never beyond the time between failures") {
  CHECK(best_interval(0, 3600) == 0);
  // By hand: sqrt(2 * 50 * 10000) = 1000, ratio 0.0025: 1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50.
  CHECK(best_interval(50, 10000) == Approx(966.9444).epsilon(1e-6));
  CHECK(best_interval(200, 100) == 100);
  CHECK(best_interval(1e6, 100) == 100);
}
