#include "lib/parallel/sync/seats.h"

#include <doctest/doctest.h>

#include <set>

namespace {

using namespace scaletrain;
using parallel::seat_of;
using parallel::seats_of;

TEST_CASE("seats are those of replicas one behind the other, in each by place") {
  struct SeatCase {
    core::MeshSizes sizes;
    int ranks, replicas, places;
    std::vector<int> seats;  // by rank
  };
  const std::vector<SeatCase> cases{
      {{}, 3, 3, 1, {0, 1, 2}},
      {{.pipe = 1, .replica = {}, .shard = 2}, 4, 2, 2, {0, 1, 2, 3}},
      // The stages of a replica are further apart than the replicas.
      {{.pipe = 2, .replica = {}}, 4, 2, 2, {0, 2, 1, 3}},
      {{.pipe = 2, .replica = {}, .tensor = 2}, 8, 2, 4, {0, 1, 4, 5, 2, 3, 6, 7}},
      // Ranks that share experts are of one replica.
      {{.replica = {}, .expert = 2}, 4, 2, 2, {0, 1, 2, 3}},
      {{.pipe = 2, .replica = {}, .expert = 2}, 8, 2, 4, {0, 1, 4, 5, 2, 3, 6, 7}},
  };
  for (const SeatCase& one : cases) {
    const core::MeshPlan plan(one.ranks, one.sizes);
    const parallel::Seats seats = seats_of(plan);
    CHECK(seats.replicas == one.replicas);
    CHECK(seats.places == one.places);
    CHECK(seats.count() == one.ranks);
    for (int rank = 0; rank < one.ranks; ++rank) {
      const int seat = seat_of(plan, rank);
      CHECK(seat == one.seats[static_cast<std::size_t>(rank)]);
      CHECK(seats.replica(seat) == plan.replica(rank));
      CHECK(seats.rank(seats.replica(seat), seats.place(seat)) == seat);
    }
  }
}

}  // namespace
