#include "lib/train/rules/lost_positions.h"

#include <doctest/doctest.h>

namespace scaletrain::train {

TEST_CASE("positions that were lost are ranges of epochs, with a replica's share of each period") {
  using Positions = std::vector<std::vector<std::int64_t>>;
  // Of 3 replicas, each with 2 micro-batches of 4 a step: 24 samples, 10 steps an epoch.
  const recipe::BatchPlan batch{.per_device = 4, .accumulate = 2, .global = 24};
  const Length length{.steps_per_epoch = 10, .total_steps = 100};
  const auto lost = [&](std::int64_t from, std::int64_t to) {
    Positions positions;
    append_lost_positions({.replica = 1, .replicas = 3, .from = from, .to = to}, length, batch,
                          positions);
    return positions;
  };
  // Of replicas of two data-parallel ranks, each with micro-batches of 2.
  Positions sharded;
  append_lost_positions({.replica = 1, .replicas = 3, .readers = 2, .from = 7, .to = 9}, length,
                        {.per_device = 2, .accumulate = 2, .global = 24}, sharded);
  CHECK(sharded == lost(7, 9));
  CHECK(lost(7, 7).empty());
  CHECK(lost(7, 5).empty());  // one that is ahead
  CHECK(lost(7, 9) == Positions{{0, 7 * 24, 9 * 24, 12, 4, 4}});
  CHECK(lost(18, 31) ==
        Positions{{1, 8 * 24, 240, 12, 4, 4}, {2, 0, 240, 12, 4, 4}, {3, 0, 24, 12, 4, 4}});
}

}  // namespace scaletrain::train
