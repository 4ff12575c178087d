#include "lib/observe/stragglers.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using scaletrain::observe::OwnTimes;
using scaletrain::observe::Straggler;
using scaletrain::observe::Stragglers;

namespace {

const OwnTimes kFast{.data = 0.01, .compute = 0.09, .checkpoint = 0};

// What is told in each of `windows` windows with the same times.
std::vector<std::size_t> told(const std::vector<OwnTimes>& ranks, int windows) {
  Stragglers stragglers;
  std::vector<std::size_t> result;
  for (int i = 0; i < windows; ++i) result.push_back(stragglers.add(ranks).size());
  return result;
}

}  // namespace

TEST_CASE("a slow rank is reported once, in the third window, with its slow phase") {
  const std::vector<OwnTimes> ranks{kFast, kFast, {.data = 0.06, .compute = 0.09}, kFast};
  CHECK(told(ranks, 6) == std::vector<std::size_t>{0, 0, 1, 0, 0, 0});
  Stragglers stragglers;
  stragglers.add(ranks);
  stragglers.add(ranks);
  const Straggler slow = stragglers.add(ranks).at(0);
  CHECK(slow.rank == 2);
  CHECK(slow.phase == std::string("data"));
  CHECK(slow.seconds == doctest::Approx(0.15));
  CHECK(slow.median == doctest::Approx(0.10));
}

TEST_CASE("each phase can be the slow one; of two ranks the faster is the measure") {
  const auto phase = [](const OwnTimes& slow) {
    Stragglers stragglers;
    const std::vector<OwnTimes> ranks{slow, kFast};
    stragglers.add(ranks);
    stragglers.add(ranks);
    return std::string(stragglers.add(ranks).at(0).phase);
  };
  CHECK(phase({.data = 0.01, .compute = 0.2}) == "compute");
  CHECK(phase({.data = 0.01, .compute = 0.09, .checkpoint = 0.1}) == "checkpoint");
}

TEST_CASE("ranks that are all slow, a little slower, or slow by milliseconds are not reported") {
  const OwnTimes slow{.data = 1, .compute = 1};
  CHECK(told({slow, slow, slow}, 4) == std::vector<std::size_t>{0, 0, 0, 0});
  CHECK(told({kFast, {.data = 0.01, .compute = 0.12}}, 4) == std::vector<std::size_t>{0, 0, 0, 0});
  CHECK(told({{.compute = 0.001}, {.compute = 0.004}}, 4) == std::vector<std::size_t>{0, 0, 0, 0});
}

TEST_CASE("slow now and then is not steadily") {
  Stragglers stragglers;
  for (int i = 0; i < 12; ++i) {
    const OwnTimes second = i % 3 == 2 ? kFast : OwnTimes{.compute = 1};
    CHECK(stragglers.add(std::vector<OwnTimes>{kFast, second}).empty());
  }
}
