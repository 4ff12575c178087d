#include "lib/data/order/source_turns.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("turns go by weight, and each source counts its own") {
  const SourceTurns turns({3, 1});
  std::vector<std::int64_t> next(2);
  for (std::int64_t x = 0; x < 1000; ++x) {
    CHECK(turns.before(x) == next);
    const SourceTurns::Turn turn = turns.at(x);
    CHECK(turn.number == next[turn.source]++);
    CHECK(std::abs(static_cast<double>(next[0]) - static_cast<double>(x + 1) * 3 / 4) <= 1);
  }
}

TEST_CASE("one source has every turn") {
  const SourceTurns turns({0.5});
  CHECK(turns.at(1L << 40).number == 1L << 40);
  CHECK(turns.before(7) == std::vector<std::int64_t>{7});
}

TEST_CASE("lanes of evenly spread phases give the first source its share of all turns") {
  const SourceTurns turns({1, 2, 4});
  constexpr std::int64_t kLanes = 64;
  for (std::int64_t x = 1; x < 300; ++x) {
    std::vector<std::int64_t> counts(3);
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
      const std::vector<std::int64_t> own = turns.before(x, (lane << 32) / kLanes);
      for (std::size_t i = 0; i < 3; ++i) counts[i] += own[i];
    }
    const auto all = static_cast<double>(x * kLanes);
    CHECK(std::abs(static_cast<double>(counts[0]) - all / 7) <= 1);  // Hermite's identity
    CHECK(counts[0] + counts[1] + counts[2] == x * kLanes);
    CHECK(std::abs(static_cast<double>(counts[1]) - all * 2 / 7) <= kLanes);
  }
}

TEST_CASE("a phase never makes a turn before the first, nor an overflow") {
  const SourceTurns turns({1, 1e6});
  const std::uint64_t last_phase = (std::uint64_t{1} << 32) - 1;
  CHECK(turns.before(0, last_phase) == std::vector<std::int64_t>{0, 0});
  const std::int64_t far = std::numeric_limits<std::int64_t>::max() - 1;
  const std::vector<std::int64_t> counts = turns.before(far, last_phase);
  CHECK(counts[0] + counts[1] == far);
  CHECK(static_cast<double>(counts[0]) == doctest::Approx(std::ldexp(1, 63) / 1e6).epsilon(1e-3));
}
