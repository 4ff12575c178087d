// Nodes that come and go, in simulated time.
#include <doctest/doctest.h>

#include <csignal>

#include "launcher/agents/leader.h"
#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

// A running round of `nodes` of 2 to 4 nodes.
Cluster running_nodes(int nodes) {
  Cluster cluster(elastic_terms(2, 4));
  cluster.lead("a0");
  for (int node = 1; node < nodes; ++node) cluster.join(fmt::format("a{}", node));
  cluster.run(milliseconds(4000));
  REQUIRE(cluster.leader->state().phase == Phase::kFormed);
  REQUIRE(cluster.leader->state().nodes == nodes);
  cluster.start_round();
  return cluster;
}

TEST_CASE("a round starts at once with the most nodes, with fewer after the last call") {
  for (const int nodes : {2, 3, 4}) {
    CAPTURE(nodes);
    Cluster cluster(elastic_terms(2, 4));
    cluster.lead("a0");
    for (int node = 1; node < nodes; ++node) cluster.join(fmt::format("a{}", node));
    cluster.run(milliseconds(2500));
    CHECK((cluster.leader->state().phase == Phase::kFormed) == (nodes == 4));
    cluster.run(milliseconds(1000));
    CHECK(cluster.leader->state().nodes == nodes);
  }
}

TEST_CASE("the node with the store is number 0, the others follow in the order of their coming") {
  Cluster cluster(elastic_terms(2, 3));
  cluster.lead("a0");
  cluster.join("b");
  cluster.join("c");
  cluster.join("d");  // one too many: it waits
  cluster.run(milliseconds(500));
  for (const int rank : {0, 1, 2}) {
    CHECK(cluster.agents[static_cast<std::size_t>(rank)]->member->rank() == rank);
  }
  CHECK_FALSE(cluster.agents[3]->member->rank().has_value());
}

TEST_CASE("a job runs on as many nodes as fit it") {
  Cluster cluster(elastic_terms(1, 4));
  cluster.fits = [](int nodes) { return nodes != 3; };
  cluster.lead("a0");
  cluster.join("b");
  cluster.join("c");
  cluster.run(milliseconds(4000));
  CHECK(cluster.leader->state().nodes == 2);
}

TEST_CASE("a node that joins late makes the others re-form") {
  Cluster cluster = running_nodes(2);
  cluster.join("late");
  cluster.run(milliseconds(2500));
  CHECK(cluster.leader->state().phase == Phase::kRunning);
  cluster.run(milliseconds(1000));  // the last call for others that come with it
  CHECK(cluster.leader->state().phase == Phase::kStopping);
  for (const auto& agent : {0U, 1U}) cluster.report(*cluster.agents[agent], Outcome::kStopped);
  cluster.run(milliseconds(4000));
  CHECK(cluster.leader->state().nodes == 3);
  CHECK(cluster.leader->state().restart == 0);
}

TEST_CASE("a lost node makes the others re-form, which does not count as a restart") {
  Cluster cluster = running_nodes(4);
  cluster.agents[2]->frozen = true;
  cluster.run(milliseconds(11'000));
  CHECK(cluster.leader->state().phase == Phase::kStopping);
  cluster.report_all(Outcome::kStopped);
  const Verdict& verdict = cluster.agents[0]->verdicts.at(0);
  CHECK(verdict.again);
  CHECK(verdict.text ==
        "node 2, host host-a2 was lost: its launcher has sent no heartbeat for 10 s\n"
        "  the other nodes continue without it");
  cluster.run(milliseconds(4000));
  CHECK(cluster.leader->state().nodes == 3);
  CHECK(cluster.leader->state().restart == 0);
}

TEST_CASE("a node that cannot take part for a reason that stays ends the job") {
  Cluster cluster = running_nodes(3);
  Failure failure = failure_of_rank(-1, 2);
  failure.cause = "the folder belongs to another job";
  cluster.report(*cluster.agents[0], Outcome::kFailed, failure);
  cluster.report(*cluster.agents[1], Outcome::kStopped);
  cluster.report(*cluster.agents[2], Outcome::kStopped);
  cluster.run(milliseconds(300));
  const Verdict& verdict = cluster.agents[1]->verdicts.at(0);
  CHECK_FALSE(verdict.again);
  CHECK(verdict.code == 2);
}

TEST_CASE("the half with the store continues, a smaller part of the nodes does not") {
  for (const int lost : {1, 2, 3}) {
    CAPTURE(lost);
    Cluster cluster(elastic_terms(1, 4));
    cluster.lead("a0");
    for (const char* name : {"b", "c", "d"}) cluster.join(name);
    cluster.run(milliseconds(500));
    cluster.start_round();
    for (int node = 4 - lost; node < 4; ++node) {
      cluster.agents[static_cast<std::size_t>(node)]->frozen = true;
    }
    cluster.run(milliseconds(11'000));
    cluster.report_all(Outcome::kStopped);
    const Verdict& verdict = cluster.agents[0]->verdicts.at(0);
    CHECK(verdict.again == (lost <= 2));
    if (lost == 3) {
      CHECK(verdict.code == 75);
      CHECK(verdict.text.ends_with("too few nodes are left to continue"));
    }
  }
}

TEST_CASE("a leader that takes over waits for more than half of the last round") {
  const LastRound last{.generation = 1, .round = 3, .rank = 1, .nodes = 4};
  Cluster cluster(elastic_terms(1, 4));
  cluster.lead("b", -1, 2, last);
  cluster.join("c", -1, last);
  cluster.join("stranger");
  cluster.run(milliseconds(10'000));
  CHECK(cluster.leader->state().phase == Phase::kJoining);
  cluster.join("d", -1, last);
  cluster.run(milliseconds(4000));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
  CHECK(cluster.leader->state().round == 4);
  CHECK(cluster.leader->state().generation == 2);
}

TEST_CASE("the remaining nodes of a round continue without another last call") {
  Cluster cluster = running_nodes(3);
  cluster.agents[2]->frozen = true;
  cluster.run(milliseconds(11'000));
  cluster.report_all(Outcome::kStopped);
  CHECK(cluster.leader->state().phase == Phase::kFormed);
  CHECK(cluster.leader->state().nodes == 2);
}

TEST_CASE("an successor to whom all but the lost leader come waits for no last call") {
  const LastRound last{.generation = 1, .round = 3, .rank = 1, .nodes = 3};
  Cluster cluster(elastic_terms(1, 4));
  cluster.lead("b", -1, 2, last);
  cluster.run(milliseconds(100));
  CHECK(cluster.leader->state().phase == Phase::kJoining);
  cluster.join("c", -1, last);
  cluster.run(milliseconds(100));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
  CHECK(cluster.leader->state().nodes == 2);
}

TEST_CASE("what a round waits for is published once for all nodes") {
  const LastRound last{.generation = 1, .round = 3, .rank = 1, .nodes = 4};
  const LastRound none;
  for (const auto& [round, least, fits, text] :
       {std::tuple(none, 3, true, "waiting: 2 of 3:4 nodes are here"),
        std::tuple(none, 1, true,
                   "waiting: 2 of 1:4 nodes are here; the last call for more is 30 s"),
        std::tuple(none, 2, false,
                   "waiting: 2 of 2:4 nodes are here; the batch does not divide among the ranks of "
                   "2 nodes"),
        std::tuple(last, 1, true,
                   "waiting: 2 of 1:4 nodes are here; more than half of the 4 nodes of the last "
                   "round must come")}) {
    Cluster cluster(elastic_terms(least, 4));
    cluster.timing.last_call = milliseconds(30'000);
    cluster.fits = [fits = fits](int) { return fits; };
    cluster.lead("a", -1, 2, round);
    cluster.join("b", -1, round);
    cluster.run(milliseconds(4900));
    CHECK(cluster.agents[1]->member->state().reason == "");
    cluster.run(milliseconds(300));
    CHECK(cluster.agents[1]->member->state().reason == text);
    cluster.join("c");
    cluster.run(milliseconds(10'000));
    if (cluster.leader->state().phase == Phase::kJoining) {
      CHECK(cluster.agents[1]->member->state().reason == text);
    }
  }
}

TEST_CASE("a leader to which too few of the last round come gives up and says so") {
  const LastRound last{.generation = 1, .round = 3, .rank = 1, .nodes = 4};
  Cluster cluster(elastic_terms(1, 4));
  cluster.lead("b", -1, 2, last);
  cluster.join("c", -1, last);
  cluster.run(milliseconds(61'000));
  CHECK(cluster.agents[1]->verdicts.at(0).code == 75);
  CHECK(cluster.agents[1]->verdicts.at(0).text.find(
            "more than half of the 4 nodes of the last round must come") != std::string::npos);
}

TEST_CASE("a node whose launcher is stopped leaves; Ctrl-C on one ends the job") {
  for (const int signal : {SIGTERM, SIGINT}) {
    CAPTURE(signal);
    Cluster cluster = running_nodes(3);
    cluster.report(*cluster.agents[2], Outcome::kStopped, {}, signal, 75);
    cluster.report(*cluster.agents[0], Outcome::kStopped);
    cluster.report(*cluster.agents[1], Outcome::kFailed, failure_of_rank(2, 75, true));
    cluster.run(milliseconds(4000));
    CHECK(cluster.agents[0]->verdicts.at(0).again == (signal == SIGTERM));
    if (signal == SIGTERM) CHECK(cluster.leader->state().nodes == 2);
  }
}

// A running round of `nodes` of `least` to 4 nodes whose leader is stopped.
Cluster without_its_leader(int least, int nodes) {
  Cluster cluster(elastic_terms(least, 4));
  cluster.lead("a0");
  for (int node = 1; node < nodes; ++node) cluster.join(fmt::format("a{}", node));
  cluster.run(milliseconds(4000));
  cluster.start_round();
  cluster.report(*cluster.agents[0], Outcome::kStopped, {}, SIGTERM, 75);
  for (int node = 1; node < nodes; ++node) {
    cluster.report(*cluster.agents[static_cast<std::size_t>(node)], Outcome::kStopped);
  }
  cluster.run(milliseconds(300));
  return cluster;
}

TEST_CASE("a leader whose launcher is stopped hands over to those who stay") {
  for (const int nodes : {2, 3}) {
    CAPTURE(nodes);
    const Cluster cluster = without_its_leader(1, nodes);
    CHECK(cluster.leader->finished(cluster.now));  // all have read who leads
    CHECK(cluster.agents[1]->verdicts.at(0).again);
    CHECK(cluster.agents[1]->verdicts.at(0).text ==
          "stopped: node 0: its launcher received SIGTERM\n  the other nodes continue without it");
    const Member& successor = *cluster.agents[1]->member;
    CHECK(successor.state().handed_over);
    CHECK(successor.state().candidates.size() == static_cast<std::size_t>(nodes - 1));
    CHECK(successor.state().candidates.front().agent == "a1");
    CHECK(successor.last_round().rank == 0);
    CHECK(successor.last_round().nodes == nodes - 1);
    CHECK_FALSE(cluster.agents[0]->member->rank().has_value());

    Cluster next(elastic_terms(1, 4));  // at the successor's store
    next.lead("a1", -1, 2, successor.last_round());
    next.run(milliseconds(100));
    CHECK((next.leader->state().phase == Phase::kFormed) == (nodes == 2));
    if (nodes == 3) next.join("a2", -1, cluster.agents[2]->member->last_round());
    next.run(milliseconds(100));
    CHECK(next.leader->state().phase == Phase::kFormed);
    CHECK(next.leader->state().nodes == nodes - 1);
  }
}

TEST_CASE("a leader without which too few nodes are left ends the job") {
  const Cluster cluster = without_its_leader(2, 2);
  const Verdict& verdict = cluster.agents[1]->verdicts.at(0);
  CHECK_FALSE(verdict.again);
  CHECK(verdict.code == 75);
  CHECK(verdict.text ==
        "stopped: node 0: its launcher received SIGTERM\n  too few nodes are left to continue");
  CHECK_FALSE(cluster.agents[1]->member->state().handed_over);
}

TEST_CASE("a leader that is stopped before a round hands over, or ends the job with too few") {
  for (const int least : {1, 2}) {
    CAPTURE(least);
    Cluster cluster(elastic_terms(least, 3));
    cluster.lead("a0");
    cluster.join("b");
    cluster.run(milliseconds(300));
    cluster.leave(*cluster.agents[0], SIGTERM, 75);
    CHECK(cluster.leader->finished(cluster.now));
    CHECK(cluster.agents[1]->member->state().handed_over == (least == 1));
    if (least == 1) {
      CHECK(cluster.agents[1]->member->last_round().nodes == 1);
      TestAgent& late = cluster.join("late");
      cluster.run(milliseconds(200));
      CHECK(late.member->state().handed_over);  // it looks for the next leader
      CHECK_FALSE(late.member->rank().has_value());
    } else {
      CHECK(cluster.agents[1]->verdicts.at(0).code == 75);
      CHECK(cluster.agents[1]->verdicts.at(0).text ==
            "stopped: host host-a0: its launcher received SIGTERM\n"
            "  too few nodes are left to continue");
    }
  }
}

TEST_CASE("a leader that is stopped after its own workers are done stops the others") {
  Cluster cluster = running_nodes(3);
  cluster.report(*cluster.agents[0], Outcome::kSucceeded);
  cluster.run(milliseconds(300));
  CHECK(cluster.leader->state().phase == Phase::kRunning);
  cluster.leave(*cluster.agents[0], SIGTERM, 75);
  CHECK(cluster.agents[1]->phase() == Phase::kStopping);
  cluster.report(*cluster.agents[1], Outcome::kStopped);
  cluster.report(*cluster.agents[2], Outcome::kStopped);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[1]->member->state().handed_over);
  CHECK(cluster.leader->finished(cluster.now));
}

TEST_CASE("nodes that leave together with the leader are no part that could go on elsewhere") {
  Cluster cluster(elastic_terms(1, 4));
  cluster.lead("a0");
  for (const char* name : {"b", "c"}) cluster.join(name);
  cluster.run(milliseconds(4000));
  cluster.start_round();
  for (const std::size_t node : {0U, 1U}) {
    cluster.report(*cluster.agents[node], Outcome::kStopped, {}, SIGTERM, 75);
  }
  cluster.report(*cluster.agents[2], Outcome::kStopped);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[2]->member->state().handed_over);
  CHECK(cluster.agents[2]->member->last_round().nodes == 1);
}

TEST_CASE("an agent keeps where the others of its round can be found") {
  Cluster cluster = running_nodes(4);
  const JobState& state = cluster.agents[3]->member->state();
  REQUIRE(state.candidates.size() == 4);
  CHECK(state.candidates[0].agent == "a0");
  CHECK(state.candidates[2].host == "host-a2");
  const LastRound last = cluster.agents[3]->member->last_round();
  CHECK(last.rank == 3);
  CHECK(last.same_round({.generation = 1, .round = 1, .rank = 0, .nodes = 4}));
}

TEST_CASE("an agent that was silent for too long reads so when it comes back") {
  Cluster cluster = running_nodes(3);
  cluster.agents[1]->frozen = true;
  cluster.run(milliseconds(11'000));
  cluster.agents[1]->frozen = false;
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[1]->refused.starts_with(
      "the job's leader: declared this node lost: its launcher has sent no heartbeat for 10 s\n"));
}

TEST_CASE("an agent that joins again takes part in the next round, without its old self") {
  Cluster cluster = running_nodes(3);
  cluster.agents[1]->store->cut();
  cluster.run(milliseconds(100));
  cluster.join("a1", -1, cluster.agents[1]->member->last_round());
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[0]->phase() == Phase::kStopping);
  cluster.report(*cluster.agents[0], Outcome::kStopped);
  cluster.report(*cluster.agents[2], Outcome::kStopped);
  cluster.run(milliseconds(4000));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
  CHECK(cluster.leader->state().nodes == 3);
  CHECK(cluster.agents[3]->member->rank() == 2);
}

TEST_CASE("a cut connection is noticed at the next step") {
  Cluster cluster = running_nodes(3);
  cluster.agents[1]->store->cut();
  cluster.run(milliseconds(100));
  CHECK(cluster.agents[1]->lost == "the store: the connection was cut");
}

}  // namespace
}  // namespace scaletrain::launcher
