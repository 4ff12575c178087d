#include "lib/data/order/streamed_lane.h"

#include <doctest/doctest.h>

#include <set>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

StreamedLane lane_of(std::int64_t shards, std::int64_t lanes, std::int64_t lane) {
  return {{.seed = 3, .shards = shards, .lanes = lanes}, lane, [](std::int64_t shard) {
            return 10 * (shard + 1);
          }};
}

}  // namespace

TEST_CASE("a lane has every lanes-th shard, and goes through all of each pass") {
  StreamedLane lane = lane_of(6, 2, 1);  // shards 1, 3, 5 of 20, 40 and 60 samples
  for (std::int64_t pass = 0; pass < 3; ++pass) {
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    for (std::int64_t i = 0; i < 120; ++i) {
      const SamplePlace place = lane.at(120 * pass + i);
      CHECK(place.shard % 2 == 1);
      CHECK(place.sample < 10 * (place.shard + 1));
      seen.insert({place.shard, place.sample});
    }
    CHECK(seen.size() == 120);
  }
}

TEST_CASE("with fewer shards than lanes a lane has every m-th sample of a shard") {
  StreamedLane lane = lane_of(2, 5, 3);  // shard 1 is that of the lanes 1 and 3
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 10; ++i) {
    CHECK(lane.at(i).shard == 1);
    seen.insert(lane.at(i).sample);
  }
  CHECK(seen == std::set<std::int64_t>{1, 3, 5, 7, 9, 11, 13, 15, 17, 19});
  CHECK(lane.upcoming(0) == std::vector<std::int64_t>{1, 1});  // this pass and the next
}
