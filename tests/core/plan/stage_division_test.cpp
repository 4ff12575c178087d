#include "lib/core/plan/stage_division.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

namespace scaletrain::core {
namespace {

using Begins = std::vector<std::size_t>;

// The most expensive stage of a division.
double highest(const std::vector<double>& costs, const Begins& begins) {
  double most = 0;
  for (std::size_t stage = 0; stage < begins.size(); ++stage) {
    const std::size_t end = stage + 1 < begins.size() ? begins[stage + 1] : costs.size();
    double sum = 0;
    for (std::size_t i = begins[stage]; i < end; ++i) sum += costs[i];
    most = std::max(most, sum);
  }
  return most;
}

// The least that any division into stages of at least one unit has, by trying all of them.
double least(const std::vector<double>& costs, std::size_t stages, Begins begins = {0}) {
  if (begins.size() == stages) return highest(costs, begins);
  double best = 1e300;
  const std::size_t left = stages - begins.size();
  for (std::size_t next = begins.back() + 1; next + left <= costs.size(); ++next) {
    Begins longer = begins;
    longer.push_back(next);
    best = std::min(best, least(costs, stages, longer));
  }
  return best;
}

}  // namespace

TEST_CASE("equal units are divided evenly") {
  CHECK(divide_into_stages({1, 1, 1, 1}, 1) == Begins{0});
  CHECK(divide_into_stages({1, 1, 1, 1}, 2) == Begins{0, 2});
  CHECK(divide_into_stages({1, 1, 1, 1}, 4) == Begins{0, 1, 2, 3});
}

TEST_CASE("a unit that costs more than others stands alone, and the rest is divided evenly") {
  CHECK(divide_into_stages({9, 1, 1, 1, 1}, 3) == Begins{0, 1, 3});  // 9, 2, 2 and not 9, 1, 3
  CHECK(divide_into_stages({1, 1, 9, 1}, 3) == Begins{0, 2, 3});
}

TEST_CASE("each stage has a unit, also where units cost nothing") {
  CHECK(divide_into_stages({0, 0, 0}, 3) == Begins{0, 1, 2});
  CHECK(divide_into_stages({0, 5, 0, 0}, 3).size() == 3);
}

TEST_CASE("the most expensive stage costs as little as in any division") {
  std::uint64_t state = 7;
  for (int trial = 0; trial < 300; ++trial) {
    const auto draw = [&state](std::uint64_t below) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return (state >> 33) % below;
    };
    std::vector<double> costs(1 + draw(9));
    for (double& cost : costs) cost = static_cast<double>(draw(20));
    const std::size_t stages = 1 + draw(costs.size());
    const Begins begins = divide_into_stages(costs, stages);
    CHECK(begins.front() == 0);
    CHECK(std::is_sorted(begins.begin(), begins.end()));
    CHECK(std::adjacent_find(begins.begin(), begins.end()) == begins.end());
    CHECK(highest(costs, begins) == least(costs, stages));
  }
}

}  // namespace scaletrain::core
