#include "launcher/agents/records.h"

#include <doctest/doctest.h>

#include <csignal>

#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a join comes back as it was written") {
  const Join join{
      .candidate = {.agent = "a", .host = "h", .addresses = {"10.0.0.1", "fd00::1"}, .port = 7},
      .proof = "p",
      .nnodes = "2:4",
      .node = 3,
      .nproc = 8,
      .replicas = "word@5@10.0.0.1",
      .last = {.generation = 1, .round = 2, .rank = 3, .nodes = 4},
      .recipe = {{"optimizer.lr", "0.1"}}};
  const Join read = parse<Message>(to_line(Message{.join = join})).join.value();
  CHECK(read.candidate.agent == "a");
  CHECK(read.candidate.addresses == join.candidate.addresses);
  CHECK(read.candidate.port == 7);
  CHECK(read.nnodes == "2:4");
  CHECK(read.node == 3);
  CHECK(read.nproc == 8);
  CHECK(read.replicas == join.replicas);
  CHECK(read.last.same_round(join.last));
  CHECK(read.last.rank == 3);
  CHECK(read.recipe == join.recipe);
}

TEST_CASE("a verdict comes back with its failure, whatever bytes stand in the last lines") {
  Verdict verdict{.round = 2, .again = true, .code = 137, .text = "rank 3 failed", .failure = {}};
  verdict.failure = Failure{.host = "h", .node = 1, .device = "cuda:1", .rank = 3};
  verdict.failure->status.signal = SIGKILL;
  verdict.failure->step = 12;
  verdict.failure->last_lines = {"a\xff\n", "b"};
  verdict.failure->hang = "rank 3 on host h never joined";
  verdict.failure->hang_lines = {"rank 3, pid 9: silent"};
  const Verdict read = parse<Verdict>(to_line(verdict));
  CHECK(read.round == 2);
  CHECK(read.again);
  CHECK(read.code == 137);
  REQUIRE(read.failure.has_value());
  CHECK(read.failure->node == 1);
  CHECK(read.failure->device == "cuda:1");
  CHECK(read.failure->status.signal == SIGKILL);
  CHECK(read.failure->step == 12);
  CHECK(read.failure->last_lines == std::vector<std::string>{"a\xef\xbf\xbd\n", "b"});
  CHECK(read.failure->hang == verdict.failure->hang);
  CHECK(read.failure->hang_lines == verdict.failure->hang_lines);
}

TEST_CASE("heartbeats are read as they were written, without a silence where none was given") {
  using std::chrono::milliseconds;
  const auto beat =
      parse<AgentHeartbeat>(to_line(AgentHeartbeat{.count = 7, .silence = milliseconds(250)}));
  CHECK(beat.count == 7);
  CHECK(beat.silence == milliseconds(250));
  const auto leader_heartbeat = parse<LeaderHeartbeat>(
      to_line(LeaderHeartbeat{.count = 3, .version = 4, .silence = milliseconds(1500)}));
  CHECK(leader_heartbeat.count == 3);
  CHECK(leader_heartbeat.version == 4);
  CHECK(leader_heartbeat.silence == milliseconds(1500));
  CHECK(parse<AgentHeartbeat>("8").silence == milliseconds(0));
  CHECK(parse<LeaderHeartbeat>("").version == 0);
}

TEST_CASE("a lost replica is read as it was written, in a message and in the job state") {
  LostReplica lost{.round = 3, .number = 2, .failure = {.host = "h", .node = 1, .rank = 5}};
  lost.failure.status.signal = SIGKILL;
  const LostReplica read = parse<Message>(to_line(Message{.lost = lost})).lost.value();
  CHECK(read.round == 3);
  CHECK(read.number == 2);
  CHECK(read.failure.rank == 5);
  CHECK(read.failure.status.signal == SIGKILL);
  JobState state;
  state.lost = {lost, lost};
  CHECK(parse<JobState>(to_line(state)).lost.size() == 2);
  CHECK_FALSE(parse<Message>(to_line(Message{.leaves = Departure{.agent = "a"}})).lost);
}

TEST_CASE("a report without a failure has none") {
  const Report report{.agent = "a",
                      .round = 4,
                      .outcome = Outcome::kStopped,
                      .signal = SIGTERM,
                      .status = 75,
                      .reason = "why",
                      .failure = {}};
  const Report read = parse<Message>(to_line(Message{.report = report})).report.value();
  CHECK(read.agent == "a");
  CHECK(read.round == 4);
  CHECK(read.outcome == Outcome::kStopped);
  CHECK(read.signal == SIGTERM);
  CHECK(read.status == 75);
  CHECK(read.reason == "why");
  CHECK_FALSE(read.failure.has_value());
}

TEST_CASE("a state comes back as it was written") {
  JobState state;
  state.phase = Phase::kRunning;
  state.generation = 2;
  state.round = 3;
  state.nodes = 4;
  state.store_host = "10.0.0.7";
  state.store_port = 5;
  state.plan = "plan";
  state.one_host = true;
  state.failed = true;
  state.candidates = {{.agent = "a", .host = "h", .addresses = {"10.0.0.1"}, .port = 7}};
  const auto read = parse<JobState>(to_line(state));
  CHECK(read.phase == Phase::kRunning);
  CHECK(read.generation == 2);
  CHECK(read.round == 3);
  CHECK(read.nodes == 4);
  CHECK(read.store_host == "10.0.0.7");
  CHECK(read.store_port == 5);
  CHECK(read.plan == "plan");
  CHECK(read.one_host);
  CHECK(read.failed);
  REQUIRE(read.candidates.size() == 1);
  CHECK(read.candidates[0].addresses == state.candidates[0].addresses);
}

TEST_CASE("what is no record is refused, with its bytes escaped") {
  for (const std::string text : {"", "GET / HTTP/1.1", "[]", "{}", "{\"phase\":\"x\"}"}) {
    CHECK_THROWS_AS(parse<JobState>(text), core::InternalError);
  }
  CHECK_THROWS_WITH(parse<JobState>("\x1b[31m"),
                    "the launchers' store: has an invalid record of a launcher: \\x1b[31m\n"
                    "  give every node the same version of scaletrain");
}

TEST_CASE("proofs differ by role, job and token") {
  const std::string proof = proof_of("agent", "job", "token");
  CHECK(proof == proof_of("agent", "job", "token"));
  CHECK(proof != proof_of("store", "job", "token"));
  CHECK(proof != proof_of("agent", "job2", "token"));
  CHECK(proof != proof_of("agent", "job", ""));
  CHECK(proof_of("agent", "a", "bc") != proof_of("agent", "ab", "c"));
}

}  // namespace
}  // namespace scaletrain::launcher
