#include "launcher/workers/stop_ladder.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;
using LadderStep = StopLadder::Step;

const core::SteadyTime kLadderStart{};

TEST_CASE("workers that run are left alone") {
  StopLadder ladder(milliseconds(100));
  CHECK_FALSE(ladder.stopping());
  CHECK_FALSE(ladder.deadline().has_value());
  CHECK(ladder.due(kLadderStart + std::chrono::hours(1)) == LadderStep::kNothing);
}

TEST_CASE("workers that were asked are killed after the grace period, and given up after another") {
  StopLadder ladder(milliseconds(100));
  ladder.ask(kLadderStart);
  CHECK(ladder.stopping());
  CHECK(ladder.deadline() == kLadderStart + milliseconds(100));
  CHECK(ladder.due(kLadderStart + milliseconds(99)) == LadderStep::kNothing);
  CHECK(ladder.due(kLadderStart + milliseconds(100)) == LadderStep::kKill);
  CHECK(ladder.kill(kLadderStart + milliseconds(100)));
  CHECK(ladder.deadline() == kLadderStart + milliseconds(10'100));  // kKillPatience
  CHECK(ladder.due(kLadderStart + milliseconds(10'099)) == LadderStep::kNothing);
  CHECK_FALSE(ladder.given_up());
  CHECK(ladder.due(kLadderStart + milliseconds(10'100)) == LadderStep::kGiveUp);
  CHECK(ladder.given_up());
  CHECK(ladder.due(kLadderStart + milliseconds(20'000)) == LadderStep::kNothing);
}

TEST_CASE("workers are killed once, also where nobody asked before") {
  StopLadder ladder(std::chrono::hours(1));
  CHECK(ladder.kill(kLadderStart));
  CHECK(ladder.stopping());
  CHECK_FALSE(ladder.kill(kLadderStart + milliseconds(5000)));
  CHECK(ladder.deadline() == kLadderStart + milliseconds(10'000));
}

}  // namespace
}  // namespace scaletrain::launcher
