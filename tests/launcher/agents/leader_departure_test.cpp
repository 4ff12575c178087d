// Launchers that leave a job of fixed nodes, or fall silent when it is done, in simulated time.
#include <doctest/doctest.h>

#include <csignal>

#include "launcher/agents/leader.h"
#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a node that falls silent after its workers succeeded stops nobody") {
  Cluster cluster(fixed_terms(2));
  cluster.lead("a0");
  cluster.join("a1", 1);
  cluster.run(milliseconds(300));
  cluster.start_round();
  cluster.report(*cluster.agents[1], Outcome::kSucceeded);
  cluster.run(milliseconds(1500));
  cluster.agents[1]->frozen = true;
  cluster.run(milliseconds(12'000));
  CHECK(cluster.leader->state().phase == Phase::kRunning);
  cluster.report(*cluster.agents[0], Outcome::kSucceeded);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[0]->verdicts.at(0).code == 0);
  CHECK_FALSE(cluster.agents[0]->verdicts.at(0).again);
}

TEST_CASE("a run that is done is not started again, whatever becomes of a launcher") {
  const auto verdict_on = [](bool is_silent, Outcome other, std::optional<Failure> failure) {
    Cluster cluster(fixed_terms(2));
    cluster.is_done = [] { return true; };
    cluster.lead("a0", 0, 1, {}, {.most = 3});
    cluster.join("a1", 1);
    cluster.run(milliseconds(300));
    cluster.start_round();
    if (is_silent) {
      cluster.agents[1]->frozen = true;
      cluster.run(milliseconds(12'000));
    } else {
      cluster.report(*cluster.agents[1], Outcome::kStopped, {}, SIGTERM, 75);
    }
    cluster.report(*cluster.agents[0], other, std::move(failure));
    cluster.run(milliseconds(300));
    return cluster.agents[0]->verdicts.at(0);
  };
  for (const Outcome other : {Outcome::kSucceeded, Outcome::kStopped}) {
    const Verdict silent = verdict_on(true, other, {});
    CHECK_FALSE(silent.again);
    CHECK(silent.code == 0);
    CHECK(silent.text ==
          "warning: node 1, host host-a1 was lost: its launcher has sent no heartbeat for 10 s\n"
          "  the run was done before that");
    const Verdict stopped = verdict_on(false, other, {});
    CHECK(stopped.code == 0);
    CHECK(stopped.text ==
          "stopped: node 1: its launcher received SIGTERM\n  the run was done before that");
  }
  CHECK(verdict_on(false, Outcome::kFailed, failure_of_rank(0, 65)).code == 65);
}

TEST_CASE(
    "Ctrl-C at one launcher before all nodes have joined ends the job for those that have joined") {
  for (const std::size_t who : {0U, 1U}) {
    CAPTURE(who);
    Cluster cluster(fixed_terms(3));
    cluster.lead("a0");
    cluster.join("a1", 1);
    cluster.run(milliseconds(300));
    cluster.leave(*cluster.agents[who], SIGINT, 130);
    const Verdict& verdict = cluster.agents[1 - who]->verdicts.at(0);
    CHECK(verdict.code == 130);
    CHECK(verdict.text == fmt::format("stopped: host host-a{}: its launcher received SIGINT", who));
    TestAgent& late = cluster.join("a2", 2);
    cluster.run(milliseconds(200));
    CHECK(late.verdicts.at(0).code == 130);
  }
}

TEST_CASE(
    "SIGTERM at one launcher before all nodes have joined ends only that one, unless it leads") {
  Cluster cluster(fixed_terms(2));
  cluster.lead("a0");
  cluster.run(milliseconds(300));
  Cluster other(fixed_terms(3));
  other.lead("a0");
  other.join("a1", 1);
  other.run(milliseconds(300));
  other.leave(*other.agents[1], SIGTERM, 75);
  CHECK(other.leader->state().phase == Phase::kJoining);
  other.join("b1", 1);  // it is started again
  other.join("a2", 2);
  other.run(milliseconds(300));
  CHECK(other.leader->state().phase == Phase::kFormed);

  cluster.join("late", 1);
  cluster.leave(*cluster.agents[0], SIGTERM, 75);
  CHECK(cluster.leader->finished(cluster.now));
  CHECK(cluster.agents[1]->verdicts.at(0).code == 75);
}

TEST_CASE("a signal between the forming and the start of a round is that of the round") {
  Cluster cluster(fixed_terms(2));
  cluster.lead("a0");
  cluster.join("a1", 1);
  cluster.run(milliseconds(300));
  REQUIRE(cluster.leader->state().phase == Phase::kFormed);
  cluster.leave(*cluster.agents[1], SIGINT, 130);
  CHECK(cluster.agents[0]->phase() == Phase::kStopping);
  cluster.report(*cluster.agents[0], Outcome::kStopped);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[0]->verdicts.at(0).code == 130);
  CHECK(cluster.agents[0]->verdicts.at(0).text == "stopped: node 1: its launcher received SIGINT");
}

}  // namespace
}  // namespace scaletrain::launcher
