#include "lib/local_sgd/hub_ranks.h"

#include <doctest/doctest.h>

#include <set>

namespace {

using namespace scaletrain;
using local_sgd::hub_rank;
using local_sgd::hub_ranks;

TEST_CASE("ranks at the hub are numbered by replica, then by place") {
  struct RankCase {
    core::MeshSizes sizes;
    int ranks, replicas, places;
    std::vector<int> hub;  // by rank
  };
  const std::vector<RankCase> cases{
      {{}, 3, 3, 1, {0, 1, 2}},
      {{.pipe = 1, .replica = {}, .shard = 2}, 4, 2, 2, {0, 1, 2, 3}},
      // The stages of a replica are further apart than the replicas.
      {{.pipe = 2, .replica = {}}, 4, 2, 2, {0, 2, 1, 3}},
      {{.pipe = 2, .replica = {}, .tensor = 2}, 8, 2, 4, {0, 1, 4, 5, 2, 3, 6, 7}},
      // Ranks that share experts are of one replica.
      {{.replica = {}, .expert = 2}, 4, 2, 2, {0, 1, 2, 3}},
      {{.pipe = 2, .replica = {}, .expert = 2}, 8, 2, 4, {0, 1, 4, 5, 2, 3, 6, 7}},
  };
  for (const RankCase& one : cases) {
    const core::MeshPlan plan(one.ranks, one.sizes);
    const local_sgd::HubRanks hub = hub_ranks(plan);
    CHECK(hub.replicas == one.replicas);
    CHECK(hub.places == one.places);
    CHECK(hub.count() == one.ranks);
    for (int rank = 0; rank < one.ranks; ++rank) {
      const int number = hub_rank(plan, rank);
      CHECK(number == one.hub[static_cast<std::size_t>(rank)]);
      CHECK(hub.replica(number) == plan.replica(rank));
      CHECK(hub.rank(hub.replica(number), hub.place(number)) == number);
    }
  }
}

}  // namespace
