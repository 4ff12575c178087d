// DilocoCoordinator of replicas of several ranks: what is decided of a replica is so for all of
// them.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/local_sgd/coordinator_on_paper.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::local_sgd;
using testing::CoordinatorOnPaper;

// Three replicas of two ranks: 0 and 1, 2 and 3, 4 and 5.
constexpr int kPairs = 3, kPairRanks = 6;

void meet_all(CoordinatorOnPaper& hub, std::int64_t step) {
  for (int rank = 0; rank < kPairRanks; ++rank) hub.synchronize(rank, step);
  for (int rank = 0; rank < kPairRanks; ++rank) CHECK(hub.take(rank) == "synchronized");
}

TEST_CASE("ranks at one place take the mean of theirs, when all ranks of all replicas have come") {
  CoordinatorOnPaper hub(kPairs, 2);
  for (const int rank : {5, 0, 3, 2, 4}) {
    hub.give(rank, 7, rank % 2 == 0 ? rank : 10 * rank);
    for (int other = 0; other < kPairRanks; ++other) CHECK(hub.take(other).empty());
  }
  hub.give(1, 7, 10);
  for (const int rank : {0, 2, 4}) CHECK(hub.take(rank) == "mean 2");   // (0 + 2 + 4) / 3
  for (const int rank : {1, 3, 5}) CHECK(hub.take(rank) == "mean 30");  // (10 + 30 + 50) / 3
  for (int rank = 0; rank < kPairRanks - 1; ++rank) hub.synchronize(rank, 8);
  CHECK(hub.take(0).empty());
  hub.synchronize(5, 8);
  for (int rank = 0; rank < kPairRanks; ++rank) CHECK(hub.take(rank) == "synchronized");
  for (int replica = 0; replica < kPairs; ++replica) CHECK(hub.place(replica).steps == 8);
}

TEST_CASE("with one of its ranks a replica is lost at each place, whatever the others gave") {
  for (const int lost : {2, 3}) {
    CAPTURE(lost);
    CoordinatorOnPaper hub(kPairs, 2);
    meet_all(hub, 4);
    for (const int rank : {0, 1, 4, 5}) hub.give(rank, 0, rank);
    hub.give(5 - lost, 0, 100);  // its fellow's
    CHECK(hub.take(0).empty());
    hub.lose(lost);
    for (const int rank : {0, 4}) CHECK(hub.take(rank) == "mean 2");  // (0 + 4) / 2
    for (const int rank : {1, 5}) CHECK(hub.take(rank) == "mean 3");  // (1 + 5) / 2
    for (const int rank : {2, 3}) CHECK(hub.take(rank).empty());
    hub.give(5 - lost, 1, 100);  // it has not heard yet
    hub.lose(5 - lost);
    for (const int rank : {0, 1, 4, 5}) hub.give(rank, 1, 1);
    for (const int rank : {0, 1, 4, 5}) CHECK(hub.take(rank) == "mean 1");
    CHECK(hub.place(1).is_lost);
    CHECK(hub.place(1).steps == 4);
    CHECK_FALSE(hub.place(0).is_lost);
    CHECK_FALSE(hub.place(2).is_lost);
  }
}

TEST_CASE("all ranks say where they are before a stop is agreed on") {
  CoordinatorOnPaper hub(kPairs, 2);
  hub.give(0, 0, 1);  // waits in an exchange
  hub.hear(3, {.kind = kStop, .step = 5});
  for (const int rank : {0, 1, 2, 4, 5}) CHECK(hub.take(rank) == "stop requested");
  for (const int rank : {0, 1, 4}) hub.hear(rank, {.kind = kStop, .step = 8});
  hub.hear(2, {.kind = kStop, .step = 5});
  for (int rank = 0; rank < kPairRanks; ++rank) CHECK(hub.take(rank).empty());
  hub.lose(5);  // and so is 4
  for (int rank = 0; rank < 4; ++rank) CHECK(hub.take(rank) == "stop at 8");
  for (const int rank : {4, 5}) CHECK(hub.take(rank).empty());
}

TEST_CASE("rank 0 gives up a replica of which it waits for one rank") {
  CoordinatorOnPaper hub(kPairs, 2);
  for (const int rank : {0, 1, 2, 3, 4}) hub.give(rank, 0, rank);
  hub.hear(0, {.kind = kGiveUp});
  for (const int rank : {0, 2}) CHECK(hub.take(rank) == "mean 1");
  for (const int rank : {1, 3}) CHECK(hub.take(rank) == "mean 2");
  CHECK(hub.take(4).empty());
  CHECK_FALSE(hub.place(2).is_lost);
}

TEST_CASE("each rank of rank 0's replica is sent the states of its place in complete replicas") {
  CoordinatorOnPaper hub(kPairs, 2);
  const auto body = [](double value) { return as_bytes(at::full({1}, value)); };
  hub.hear(1, {.kind = kAwaitStates});  // before rank 0 has wished
  hub.hear(0, {.kind = kRequest, .number = 2});
  for (const int rank : {2, 3, 4, 5}) CHECK(hub.take(rank) == "request 2");
  for (const int rank : {0, 1}) CHECK(hub.take(rank).empty());
  for (const int rank : {2, 3, 4}) {
    hub.hear(rank, {.kind = kState, .number = 0, .body = body(rank)});
    hub.hear(rank, {.kind = kState, .number = 1, .body = body(10 * rank)});
    hub.hear(rank, {.kind = kStatesSent});
  }
  hub.hear(0, {.kind = kAwaitStates});
  CHECK(hub.take(1).empty());
  hub.lose(5);  // 4 has given all of its own
  CHECK(hub.take(1) == "of 1: number 0, 3");
  CHECK(hub.take(1) == "of 1: number 1, 30");
  CHECK(hub.take(1) == "states sent");
  CHECK(hub.take(0) == "of 1: number 0, 2");
  CHECK(hub.take(0) == "of 1: number 1, 20");
  CHECK(hub.take(0) == "states sent");
  for (const int rank : {2, 3, 4}) CHECK(hub.take(rank).empty());
  // The next round's.
  hub.hear(0, {.kind = kRequest, .number = 1});
  for (const int rank : {2, 3}) {
    CHECK(hub.take(rank) == "request 1");
    hub.hear(rank, {.kind = kStatesSent});
  }
  hub.hear(0, {.kind = kAwaitStates});
  CHECK(hub.take(0).empty());
  hub.hear(1, {.kind = kAwaitStates});
  for (const int rank : {0, 1}) CHECK(hub.take(rank) == "states sent");
}

}  // namespace
