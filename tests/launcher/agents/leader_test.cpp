#include "launcher/agents/leader.h"

#include <doctest/doctest.h>

#include <csignal>

#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

// A running round of `nodes` fixed nodes.
Cluster running(int nodes, RestartLimits limits = {}) {
  Cluster cluster(fixed_terms(nodes));
  cluster.lead("a0", 0, 1, {}, limits);
  for (int node = 1; node < nodes; ++node) cluster.join(fmt::format("a{}", node), node);
  cluster.run(milliseconds(300));
  REQUIRE(cluster.leader->state().phase == Phase::kFormed);
  cluster.start_round();
  return cluster;
}

TEST_CASE("a round knows whether its nodes are launchers of one host") {
  for (const auto& [second, one_host] :
       {std::pair("host", true), std::pair("other", false), std::pair("", false)}) {
    Cluster cluster(fixed_terms(2));
    cluster.lead("a0");
    cluster.network = second;
    cluster.join("a1", 1);
    cluster.run(milliseconds(300));
    CHECK(cluster.leader->state().nodes == 2);
    CHECK(cluster.leader->state().one_host == one_host);
  }
}

TEST_CASE("fixed nodes form a round when all are there, in the order of their numbers") {
  Cluster cluster(fixed_terms(3));
  cluster.lead("a0");
  cluster.join("a2", 2);
  cluster.run(milliseconds(5000));
  CHECK(cluster.leader->state().phase == Phase::kJoining);
  cluster.join("a1", 1);
  cluster.run(milliseconds(300));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
  CHECK(cluster.agents[0]->member->rank() == 0);
  CHECK(cluster.agents[1]->member->rank() == 2);
  CHECK(cluster.agents[2]->member->rank() == 1);
  cluster.start_round();
  CHECK(cluster.agents[1]->phase() == Phase::kRunning);
  CHECK(cluster.agents[1]->member->state().store_port == 4001);
  CHECK(cluster.agents[1]->member->state().plan == "plan");
}

TEST_CASE("a round that does not form in time names who is missing, to all who came") {
  Cluster cluster(fixed_terms(4));
  cluster.lead("a0");
  cluster.join("a2", 2);
  cluster.run(milliseconds(61'000));
  for (const auto& agent : cluster.agents) {
    REQUIRE(agent->verdicts.size() == 1);
    CHECK(agent->verdicts[0].code == 75);
    CHECK(agent->verdicts[0].text.starts_with(
        "rendezvous: 2 of 4 nodes came within 60 s; missing: node 1, node 3\n"));
  }
  CHECK(cluster.leader->finished(cluster.now));
}

TEST_CASE("all succeeded: the verdict is 0 everywhere") {
  Cluster cluster = running(2);
  cluster.report_all(Outcome::kSucceeded);
  for (const auto& agent : cluster.agents) {
    REQUIRE(agent->verdicts.size() == 1);
    CHECK(agent->verdicts[0].code == 0);
    CHECK_FALSE(agent->verdicts[0].again);
  }
}

TEST_CASE("the first failure that arrives is the verdict, unless it only followed another") {
  Cluster cluster = running(3);
  cluster.report(*cluster.agents[2], Outcome::kFailed, failure_of_rank(4, 75, true));
  cluster.run(milliseconds(200));
  CHECK(cluster.agents[0]->phase() == Phase::kStopping);  // the others are told to stop
  cluster.report(*cluster.agents[1], Outcome::kFailed, failure_of_rank(3, 65));
  cluster.report(*cluster.agents[0], Outcome::kStopped);
  cluster.run(milliseconds(300));
  for (const auto& agent : cluster.agents) {
    REQUIRE(agent->verdicts.size() == 1);
    CHECK(agent->verdicts[0].code == 65);
    CHECK(agent->verdicts[0].text ==
          "rank 3 failed first: exit code 65 (node 1, host h, local rank 1, pid 7)\n"
          "  after it: rank 4: exit code 75");
  }
}

TEST_CASE("a node that falls silent stops the round and is named") {
  Cluster cluster = running(3);
  cluster.agents[1]->frozen = true;
  cluster.run(milliseconds(12'000));
  CHECK(cluster.agents[0]->phase() == Phase::kStopping);
  cluster.report(*cluster.agents[0], Outcome::kFailed, failure_of_rank(0, 1));
  cluster.report(*cluster.agents[2], Outcome::kStopped);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[0]->verdicts.at(0).code == 75);
  CHECK(cluster.agents[0]->verdicts.at(0).text ==
        "node 1, host host-a1 was lost: its launcher has sent no heartbeat for 10 s\n"
        "  also: rank 0: exit code 1");
}

TEST_CASE("a failure that was reported before a node fell silent is the cause") {
  Cluster cluster = running(2);
  cluster.report(*cluster.agents[0], Outcome::kFailed, failure_of_rank(0, 3));
  cluster.run(milliseconds(1500));
  cluster.agents[1]->frozen = true;
  cluster.run(milliseconds(12'000));
  CHECK(cluster.agents[0]->verdicts.at(0).code == 3);
}

// Of a round of three nodes that goes on without node 1, with which replicas 2 and 3 are lost.
Cluster running_apart() {
  Cluster cluster(fixed_terms(3));
  cluster.lost_with = [](int node) {
    return node == 1 ? std::vector<int>{2, 3} : std::vector<int>();
  };
  cluster.lead("a0");
  for (const int node : {1, 2}) cluster.join(fmt::format("a{}", node), node);
  cluster.run(milliseconds(300));
  cluster.start_round();
  return cluster;
}

// The same after node 1 has fallen silent.
Cluster without_node_1() {
  Cluster cluster = running_apart();
  cluster.agents[1]->frozen = true;
  cluster.run(milliseconds(12'000));
  return cluster;
}

TEST_CASE("a round goes on without a node whose replicas may be lost, and all hear of them") {
  Cluster cluster = without_node_1();
  for (const std::size_t there : {0, 2}) {
    const JobState& state = cluster.agents[there]->member->state();
    CHECK(state.phase == Phase::kRunning);
    REQUIRE(state.lost.size() == 2);
    CHECK(state.lost[0].round == 1);
    CHECK(state.lost[0].number == 2);
    CHECK(state.lost[1].number == 3);
    CHECK(state.lost[1].failure.rank == -1);
    CHECK(state.lost[1].failure.node == 1);
    CHECK(state.lost[1].failure.host == "host-a1");
    CHECK(state.lost[1].failure.status.code == 75);
    CHECK(state.lost[1].failure.cause == "its launcher has sent no heartbeat for 10 s");
  }
  cluster.report_all(Outcome::kSucceeded);
  CHECK(cluster.agents[2]->verdicts.at(0).code == 0);
  CHECK(cluster.agents[2]->member->state().lost.size() == 2);
}

TEST_CASE("a failure that comes later is the cause, and not the node that was outlived") {
  Cluster cluster = without_node_1();
  cluster.report(*cluster.agents[0], Outcome::kFailed, failure_of_rank(0, 3));
  cluster.report(*cluster.agents[2], Outcome::kStopped);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[0]->verdicts.at(0).code == 3);
  CHECK(cluster.agents[0]->verdicts.at(0).text ==
        "rank 0 failed first: exit code 3 (node 0, host h, local rank 0, pid 7)");
}

TEST_CASE("a stop names what was lost before") {
  Cluster cluster = without_node_1();
  cluster.report(*cluster.agents[2], Outcome::kStopped, {}, SIGTERM, 75);
  cluster.report(*cluster.agents[0], Outcome::kStopped);
  cluster.run(milliseconds(300));
  CHECK(cluster.agents[0]->verdicts.at(0).text ==
        "stopped: node 2: its launcher received SIGTERM\n  lost before: node 1 (lost)");
}

TEST_CASE("a node is outlived only while its round runs, and only one that may be") {
  Cluster other = running_apart();
  other.agents[2]->frozen = true;
  other.run(milliseconds(12'000));
  CHECK(other.leader->state().phase == Phase::kStopping);
  CHECK(other.leader->state().lost.empty());

  Cluster formed(fixed_terms(2));
  formed.lost_with = [](int) { return std::vector<int>{1}; };
  formed.lead("a0");
  formed.join("a1", 1);
  formed.run(milliseconds(300));
  REQUIRE(formed.leader->state().phase == Phase::kFormed);
  formed.agents[1]->frozen = true;
  formed.run(milliseconds(12'000));
  CHECK(formed.leader->state().lost.empty());
}

TEST_CASE("what one node says is lost all hear, for this round alone") {
  Cluster cluster = running(2, {.most = 1});
  const auto say = [&](int round, int number) {
    cluster.agents[1]->member->report_lost(
        {.round = round, .number = number, .failure = failure_of_rank(3, 9)});
    cluster.run(milliseconds(200));
  };
  const auto heard = [&] { return cluster.agents[0]->member->state().lost; };
  say(1, 1);
  say(1, 1);
  REQUIRE(heard().size() == 1);
  CHECK(heard()[0].number == 1);
  CHECK(heard()[0].failure.rank == 3);
  say(2, 2);  // of a round that is not this one
  CHECK(heard().size() == 1);
  cluster.report(*cluster.agents[1], Outcome::kFailed, failure_of_rank(2, 1));
  cluster.report(*cluster.agents[0], Outcome::kStopped);
  cluster.run(milliseconds(500));
  REQUIRE(cluster.leader->state().round == 2);
  CHECK(heard().empty());
  cluster.start_round();
  say(2, 1);
  CHECK(heard().size() == 1);
}

TEST_CASE("the job is silent for as long as all nodes are whose workers run") {
  Cluster cluster = running(3);
  const auto tell = [&](std::size_t agent, int silence_ms) {
    cluster.agents[agent]->member->report_silence(milliseconds(silence_ms));
  };
  const auto heard = [&] {
    cluster.run(
        milliseconds(2500));  // a beat and a heartbeat of the leader are a second apart at most
    return cluster.agents[2]->member->job_silence();
  };
  tell(0, 7000);
  tell(1, 9000);
  tell(2, 8000);
  CHECK(heard() == milliseconds(7000));
  tell(0, 10);  // one rank beats
  CHECK(heard() == milliseconds(10));
  cluster.report(*cluster.agents[0], Outcome::kSucceeded);  // its workers have ended
  CHECK(heard() == milliseconds(8000));
}

TEST_CASE("no node is declared lost after a suspension of the leader's machine") {
  Cluster cluster = running(2);
  cluster.now += std::chrono::minutes(5);
  cluster.run(milliseconds(3000));
  CHECK(cluster.leader->state().phase == Phase::kRunning);
  CHECK(cluster.agents[1]->lost.empty());
}

TEST_CASE("an agent notices that the leader stands still") {
  Cluster cluster = running(2);
  cluster.leader_frozen = true;
  cluster.run(milliseconds(11'000));
  CHECK(cluster.agents[1]->lost.find("its launcher has sent no heartbeat for 10 s") !=
        std::string::npos);
}

TEST_CASE("a failure is tried again on all nodes, as often as allowed") {
  Cluster cluster = running(2, {.most = 1});
  for (const bool again : {true, false}) {
    cluster.report(*cluster.agents[1], Outcome::kFailed, failure_of_rank(2, 1));
    cluster.report(*cluster.agents[0], Outcome::kStopped);
    cluster.run(milliseconds(500));
    CHECK(cluster.agents[0]->verdicts.back().again == again);
    if (!again) break;
    CHECK(cluster.agents[0]->verdicts.back().text.ends_with("starting again: restart 1 of 1"));
    CHECK(cluster.leader->state().round == 2);
    CHECK(cluster.leader->state().restart == 1);
    cluster.start_round();
  }
  CHECK(cluster.agents[0]->verdicts.size() == 2);
}

TEST_CASE("a failure that no restart can help is not tried again") {
  Cluster cluster = running(2, {.most = 5});
  cluster.report(*cluster.agents[1], Outcome::kFailed, failure_of_rank(2, 2));
  cluster.report(*cluster.agents[0], Outcome::kStopped);
  cluster.run(milliseconds(500));
  CHECK_FALSE(cluster.agents[0]->verdicts.back().again);
  CHECK(cluster.agents[0]->verdicts.back().code == 2);
}

TEST_CASE("a signal that one launcher received stops the job with that launcher's status") {
  Cluster cluster = running(2, {.most = 5});
  cluster.report(*cluster.agents[1], Outcome::kStopped, {}, SIGTERM, 75);
  cluster.report(*cluster.agents[0], Outcome::kFailed, failure_of_rank(0, 75, true));
  cluster.run(milliseconds(500));
  CHECK(cluster.agents[0]->verdicts.at(0).code == 75);
  CHECK(cluster.agents[0]->verdicts.at(0).text == "stopped: node 1: its launcher received SIGTERM");
  CHECK_FALSE(cluster.agents[0]->verdicts.at(0).again);
}

TEST_CASE("agents of another job or version are refused with the reason") {
  JobTerms own = fixed_terms(2);
  own.recipe = {{"optimizer.lr", "0.05"}, {"seed", "1"}};
  Cluster cluster(own);
  cluster.lead("a0");
  const Join good{.candidate = {.agent = "x", .host = "h", .addresses = {}, .port = 1},
                  .proof = "",
                  .nnodes = "2",
                  .node = 1,
                  .nproc = 2,
                  .last = {}};
  JobTerms other_job = cluster.terms, other_token = cluster.terms, other_recipe = cluster.terms;
  other_job.name = "other";
  other_token.token = "secret";
  other_recipe.recipe = {{"optimizer.lr", "0.5"}, {"seed", "1"}};
  Join other_nodes = good, other_nproc = good, other_rank = good;
  other_nodes.nnodes = "3";
  other_nproc.nproc = 4;
  other_rank.node = 7;
  const auto refused = [&](Join join, const JobTerms& terms) {
    join.candidate.agent = fmt::format("x{}", cluster.agents.size());
    TestAgent& agent = cluster.join_as(join, terms);
    cluster.run(milliseconds(300));
    return agent.refused.substr(0, agent.refused.find('\n'));
  };
  const std::string start = "the job's leader: refuses this node: ";
  const std::string job = start + "this is job \"job\", and the agent's job or token is another";
  CHECK(refused(good, other_job) == job);
  CHECK(refused(good, other_token) == job);
  CHECK(refused(other_nodes, cluster.terms) ==
        start + "it was started with --nnodes 3, and the job with 2");
  CHECK(refused(other_nproc, cluster.terms) ==
        start + "it was started with 4 workers a node, and the job with 2");
  CHECK(refused(other_rank, cluster.terms) == start + "there is no node 7 of 2");
  CHECK(refused(good, other_recipe) ==
        start + "its recipe is not the job's: optimizer.lr is 0.5, not 0.05");
  CHECK(cluster.leader->state().phase == Phase::kJoining);
  CHECK(refused(good, cluster.terms).empty());
  CHECK(cluster.leader->state().phase == Phase::kFormed);
}

TEST_CASE("a node that exists already is refused; one that was started again takes its place") {
  Cluster cluster(fixed_terms(3));
  cluster.lead("a0");
  TestAgent& first = cluster.join("b", 1);
  cluster.run(milliseconds(2000));
  TestAgent& twice = cluster.join("c", 1);
  cluster.run(milliseconds(4000));
  CHECK(twice.refused.find("node 1 exists already: host host-b") != std::string::npos);
  first.frozen = true;
  cluster.join("d", 1);
  cluster.join("e", 2);
  cluster.run(milliseconds(5000));
  CHECK(cluster.leader->state().phase == Phase::kJoining);
  cluster.run(milliseconds(7000));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
}

TEST_CASE("an agent that dies between announcing and writing a message holds nobody up for long") {
  Cluster cluster(fixed_terms(2));
  cluster.lead("a0");
  MemoryStore(cluster.table).add("inbox", 1);
  cluster.join("a1", 1);
  cluster.run(milliseconds(3000));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
}

TEST_CASE("what is no record of a launcher is passed over") {
  Cluster cluster(fixed_terms(2));
  cluster.lead("a0");
  MemoryStore stranger(cluster.table);
  stranger.set(fmt::format("inbox/{}", stranger.add("inbox", 1)), "GET / HTTP/1.1");
  cluster.join("a1", 1);
  cluster.run(milliseconds(500));
  CHECK(cluster.leader->state().phase == Phase::kFormed);
}

}  // namespace
}  // namespace scaletrain::launcher
