#include "lib/dist/collective_fault.h"

#include <doctest/doctest.h>

#include <csignal>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::dist {
namespace {

volatile std::sig_atomic_t signals = 0;

// Where `fault` comes to rank 1, with a signal that the test outlives: the number of the
// collective.
int comes_at(const char* text) {
  std::signal(SIGUSR1, [](int) { signals = signals + 1; });
  auto fault = parse_collective_fault(text);
  fault->signal = SIGUSR1;
  core::Beat beat;
  const OnEnter enter = commit_at_collective(fault, 1, beat);
  int entered = 0, came_at = 0;
  signals = 0;
  for (const int step : {2, 3, 4}) {
    beat.begin_step(step);
    for (const auto& [kind, name] : {std::pair("all-to-all", "how many"),
                                     {"all-to-all", "tokens"},
                                     {"all-reduce", "step consensus"},
                                     {"all-to-all", "tokens"}}) {
      enter(kind, name);
      ++entered;
      if (signals == 1 && came_at == 0) came_at = entered;
    }
  }
  CHECK(signals == (came_at > 0 ? 1 : 0));
  std::signal(SIGUSR1, SIG_DFL);
  return came_at;
}

}  // namespace

TEST_CASE("a fault at a collective has its step, its rank, the collective and perhaps which") {
  const auto fault = parse_collective_fault("kill@3,1,tokens of the experts,2");
  REQUIRE(fault);
  CHECK(fault->signal == SIGKILL);
  CHECK(fault->step == 3);
  CHECK(fault->rank == 1);
  CHECK(fault->collective == "tokens of the experts");
  CHECK(fault->number == 2);
  CHECK(parse_collective_fault("stop@3,1,all-gather")->signal == SIGSTOP);
  CHECK(parse_collective_fault("stop@3,1,all-gather")->number == 1);
  for (const char* const none : {"", "kill@3", "kill@3,1", "nan@x"}) {
    CHECK(!parse_collective_fault(none));
  }
  for (const char* const wrong :
       {"kill@3,1,", "kill@3,1,vote,", "kill@3,1,vote,0", "kill@3,1,vote,x", "kill@3,1,vote,1,",
        "kill@3,,vote", "kill@,1,vote", "kill,1,vote", "nan@3,1,vote"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_collective_fault(wrong), core::UsageError);
  }
}

TEST_CASE("it comes where its rank enters that collective of that step, by its kind or its name") {
  CHECK(!commit_at_collective(parse_collective_fault("kill@3,0,vote"), 1, core::Beat()));
  CHECK(!commit_at_collective(std::nullopt, 1, core::Beat()));
  CHECK(comes_at("kill@3,1,tokens") == 6);  // after four of step 2
  CHECK(comes_at("kill@3,1,tokens,2") == 8);
  CHECK(comes_at("kill@3,1,all-to-all,2") == 6);
  CHECK(comes_at("stop@4,1,step consensus") == 11);
  CHECK(comes_at("kill@3,1,step consensus,2") == 0);
  CHECK(comes_at("kill@3,1,all-gather") == 0);
}

}  // namespace scaletrain::dist
