#include "lib/dist/fake/network.h"

#include <doctest/doctest.h>

#include <chrono>

namespace {

using namespace scaletrain;
using dist::FakeKind;

TEST_CASE("in a ring each rank sends what the others have, and twice that for a sum on all") {
  CHECK(dist::sent_bytes(FakeKind::kAllReduce, 100, 4) == doctest::Approx(150));  // 2 x 3/4
  CHECK(dist::sent_bytes(FakeKind::kAllGather, 100, 4) == doctest::Approx(75));
  CHECK(dist::sent_bytes(FakeKind::kReduceScatter, 100, 4) == doctest::Approx(75));
  CHECK(dist::sent_bytes(FakeKind::kAllToAll, 100, 4) == doctest::Approx(75));
  CHECK(dist::sent_bytes(FakeKind::kBroadcast, 100, 2) == doctest::Approx(100));
  CHECK(dist::sent_bytes(FakeKind::kGather, 100, 2) == doctest::Approx(100));
}

TEST_CASE("a message takes its link's latency and its bytes' time, one behind the other") {
  dist::FakeNetwork network({.rank = 0,
                             .world_size = 4,
                             .ranks_per_node = 2,
                             .inside = {.latency_s = 1, .bytes_per_s = 100},
                             .between = {.latency_s = 2, .bytes_per_s = 10}});
  CHECK(network.is_inside_node({2, 3}));
  CHECK_FALSE(network.is_inside_node({1, 2}));
  core::SteadyTime free{};
  network.ask({.kind = FakeKind::kAllReduce, .ranks = {0, 1}, .bytes = 100}, free);
  network.ask({.kind = FakeKind::kBroadcast, .ranks = {0, 2}, .bytes = 100}, free);
  const std::vector<dist::FakeCall> calls = network.calls();
  CHECK(calls[0].seconds == doctest::Approx(2));   // 1 + 2 x 1/2 x 100 / 100
  CHECK(calls[1].seconds == doctest::Approx(12));  // 2 + 100 / 10
  CHECK(std::chrono::duration<double>(calls[1].done - calls[0].done).count() ==
        doctest::Approx(12));
}

}  // namespace
