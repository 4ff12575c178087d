#include "launcher/jobs/replicas.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "lib/core/descriptor.h"
#include "lib/core/log.h"
#include "lib/recipe/recipe.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe recipe_of(const std::string& sync, int shard = 1, int pipeline = 1) {
  recipe::Recipe recipe;
  recipe.sync.name = sync;
  recipe.parallel.shard = shard;
  recipe.parallel.pipeline = pipeline;
  return recipe;
}

recipe::Recipe with_experts(const std::string& sync, int ranks, int pipeline = 1) {
  recipe::Recipe recipe = recipe_of(sync, 1, pipeline);
  recipe.parallel.expert = ranks;
  return recipe;
}

Placement placed(int nproc, int nnodes = 1, int node_rank = 0) {
  return {.nproc = nproc, .nnodes = nnodes, .node_rank = node_rank};
}

WorkerEnd ended(int rank, core::ExitStatus status) {
  return {.rank = rank, .local_rank = rank, .pid = 7, .status = status};
}

std::vector<WorkerPlan> plan_of(int rank) {
  std::vector<WorkerPlan> plans(1);
  plans[0].rank = rank;
  plans[0].reports_lost_peer = true;
  return plans;
}

constexpr std::chrono::milliseconds kLogWait{1000};

// What is written to standard error meanwhile.
std::string logged(const std::function<void()>& body) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("log");
  const core::Descriptor before(dup(STDERR_FILENO)),
      log(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  dup2(log.get(), STDERR_FILENO);
  core::limit_log_wait(kLogWait);  // of this file
  body();
  dup2(before.get(), STDERR_FILENO);
  core::limit_log_wait(kLogWait);
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

constexpr LastSeen kTrains{.step = 4};
constexpr LastSeen kHasSaidWhy{.step = 4, .has_verdict = true};
constexpr LastSeen kLostRank0{.step = 4, .has_verdict = true, .lost_rank_0 = true};

using Ranks = std::vector<int>;

TEST_CASE("the others go on without a worker that trained in another replica than rank 0's") {
  struct Case {
    std::string what, sync;
    int rank;
    core::ExitStatus status;
    LastSeen seen;
    bool of_one, of_two;  // ranks of a replica
  };
  const core::ExitStatus killed{.signal = SIGKILL}, stopped{.code = 75}, interrupted{.code = 130};
  const std::vector<Case> cases{
      {"killed", "diloco", 2, killed, kTrains, true, true},
      {"of rank 0's", "diloco", 0, killed, kTrains, false, false},
      {"of rank 0's or the next", "diloco", 1, killed, kTrains, true, false},
      {"before it trains", "diloco", 2, killed, {.step = 0}, false, false},
      {"replicas that wait for each other", "periodic", 2, killed, kTrains, false, false},
      {"stopped", "diloco", 2, stopped, kTrains, false, false},
      {"interrupted", "diloco", 2, interrupted, kTrains, false, false},
      {"stopped", "async", 2, stopped, kTrains, true, true},
      {"lost a peer", "async", 2, stopped, kHasSaidWhy, true, true},
      {"lost a peer", "diloco", 2, stopped, kHasSaidWhy, true, true},
      {"lost rank 0", "async", 2, stopped, kLostRank0, false, false},
      {"lost rank 0", "diloco", 2, stopped, kLostRank0, false, false},
      {"interrupted, and said so", "async", 2, interrupted, kHasSaidWhy, true, true},
  };
  for (const Case& one : cases) {
    for (const int ranks : {1, 2}) {
      CAPTURE(one.sync);
      CAPTURE(one.what);
      CAPTURE(ranks);
      for (const recipe::Recipe& recipe :
           {recipe_of(one.sync, ranks), with_experts(one.sync, ranks)}) {
        Replicas replicas(recipe);
        replicas.begin(placed(4));
        CHECK(replicas.tolerates_loss(ended(one.rank, one.status), one.seen) ==
              (ranks == 1 ? one.of_one : one.of_two));
      }
    }
  }
}

TEST_CASE("the ranks of a lost replica on this node are evicted with its failed worker") {
  // Stage by stage: of four ranks on two nodes, 0 and 2 are replica 0, and 1 and 3 replica 1.
  const recipe::Recipe staged = recipe_of("diloco", 1, 2), sharded = recipe_of("diloco", 2),
                       shared = with_experts("diloco", 2), all = with_experts("async", 2, 2);
  const WorkerEnd killed = ended(3, {.signal = SIGKILL});
  for (const auto& [recipe, placement, expected] :
       {std::tuple(&staged, placed(4), Ranks{1}), std::tuple(&staged, placed(2, 2, 1), Ranks{}),
        std::tuple(&sharded, placed(2, 2, 1), Ranks{2}), std::tuple(&shared, placed(4), Ranks{2}),
        std::tuple(&shared, placed(2, 2, 1), Ranks{2}),
        std::tuple(&all, placed(8), Ranks{2, 6, 7})}) {
    Replicas replicas(*recipe);
    replicas.begin(placement);
    CHECK(replicas.evicted_with(killed, kTrains) == expected);
  }
  Replicas replicas(sharded);
  replicas.begin(placed(4));
  CHECK(replicas.evicted_with(ended(3, {.code = 75}), kTrains).empty());  // they leave themselves
  CHECK(replicas.evicted_with(ended(3, {.code = 75}), kHasSaidWhy) == Ranks{2});
}

TEST_CASE(
    "a replica lost on this node is logged once, with the node number if there are several nodes") {
  const recipe::Recipe recipe = recipe_of("diloco", 2);
  Replicas replicas(recipe);
  replicas.begin(placed(2, 3, 1));
  WorkerEnd end = ended(3, {.signal = SIGKILL});
  end.was_tolerated = true;  // which it is known to be
  std::optional<LostReplica> lost;
  CHECK(logged([&] {
          lost = replicas.note_own_loss(end, plan_of(3), {}, {.step = 9});
        }).find("rank 3 is lost, and replica 1 with it (ranks 2, 3)") != std::string::npos);
  REQUIRE(lost);
  CHECK(lost->number == 1);
  CHECK(lost->failure.rank == 3);
  CHECK(lost->failure.node == 1);
  CHECK(lost->failure.step == 9);
  CHECK_FALSE(lost->failure.followed);
  CHECK_FALSE(replicas.note_own_loss(ended(2, {.signal = SIGKILL}), plan_of(2), {}, {.step = 9}));
  CHECK(replicas.lost().text() == "rank 3 (killed by SIGKILL, step 9)");
  CHECK(replicas.count() == 3);
  replicas.begin(placed(4));
  CHECK(replicas.lost().empty());
  CHECK(replicas.note_own_loss(ended(3, {.signal = SIGKILL}), plan_of(3), {}, kTrains)
            ->failure.node == -1);
}

TEST_CASE(
    "ranks here are evicted with a replica that other nodes have lost, which is logged once") {
  const recipe::Recipe recipe = recipe_of("diloco", 1, 2);
  Replicas replicas(recipe);
  replicas.begin(placed(4, 2, 0));  // replicas 0 to 3: ranks 0 and 4, 1 and 5, 2 and 6, 3 and 7
  Failure node{.host = "b", .node = 1, .rank = -1, .cause = "nothing was heard"};
  Failure rank{.host = "b", .node = 1, .rank = 5, .status = {.code = 3}};
  const std::vector<LostReplica> lost{{.number = 1, .failure = rank},
                                      {.number = 2, .failure = node},
                                      {.number = 3, .failure = node}};
  CHECK(logged([&] { CHECK(replicas.note_losses({lost[0]}) == Ranks{1}); })
            .find("rank 5 is lost, and replica 1 with it (ranks 1, 5), the others go on: exit code "
                  "3 (node 1, host b") != std::string::npos);
  const std::string of_node = logged([&] { CHECK(replicas.note_losses(lost) == Ranks{1, 2, 3}); });
  CHECK(of_node.find("node 1, host b is lost, and replicas 2, 3 with it (ranks 2, 3, 6, 7), the "
                     "others go on: nothing was heard") != std::string::npos);
  CHECK(of_node.find("rank 5 is lost") == std::string::npos);
  CHECK(logged([&] { CHECK(replicas.note_losses(lost) == Ranks{1, 2, 3}); }).empty());
  CHECK(replicas.lost().text() == "rank 5 (exit code 3), node 1 (lost)");
}

TEST_CASE("the loss of a node without a rank of rank 0's replica is tolerated once all train") {
  const recipe::Recipe apart = recipe_of("diloco", 2), staged = recipe_of("async", 1, 2),
                       together = recipe_of("periodic", 2), shared = with_experts("async", 4);
  struct Case {
    const recipe::Recipe* recipe;
    Placement placement;
    int node;
    Ranks expected;
  };
  const std::vector<Case> cases{
      {&apart, placed(2, 3), 0, {}},     {&apart, placed(2, 3), 2, {2}},
      {&apart, placed(4, 2), 1, {2, 3}}, {&apart, placed(1, 4), 1, {}},
      {&apart, placed(1, 4), 3, {1}},    {&staged, placed(2, 2), 1, {}},
      {&staged, placed(2, 3), 1, {}},    {&together, placed(2, 3), 2, {}},
      {&shared, placed(2, 4), 1, {}},    {&shared, placed(2, 4), 2, {1}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.node);
    Replicas replicas(*one.recipe);
    replicas.begin(one.placement);
    CHECK(replicas.on_node(one.node).empty());
    replicas.train();
    CHECK(replicas.on_node(one.node) == one.expected);
    replicas.begin(one.placement);
    CHECK(replicas.on_node(one.node).empty());
  }
}

}  // namespace
}  // namespace scaletrain::launcher
