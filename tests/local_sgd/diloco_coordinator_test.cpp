#include "lib/local_sgd/diloco_coordinator.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/local_sgd/coordinator_on_paper.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::local_sgd;
using dist::HubMessage;
using testing::CoordinatorOnPaper;

TEST_CASE("each replica gets the mean when all have sent their weights") {
  CoordinatorOnPaper hub(3);
  for (const int rank : {2, 0, 1}) {
    CHECK(hub.take(2).empty());
    hub.give(rank, 4, rank + 1);
  }
  for (const int rank : {0, 1, 2}) CHECK(hub.take(rank) == "mean 2");  // (1 + 2 + 3) / 3
  hub.synchronize(0, 8);
  hub.synchronize(1, 8);
  CHECK(hub.take(0).empty());
  CHECK(hub.place(0).steps == 0);
  hub.synchronize(2, 8);
  for (const int rank : {0, 1, 2}) {
    CHECK(hub.take(rank) == "synchronized");
    CHECK(hub.take(rank).empty());
    CHECK(hub.place(rank).steps == 8);
  }
}

TEST_CASE("the sum is in the order of the ranks, whoever comes first") {
  // In fp32 1e8 + 3 is 1e8, so that the order shows: (1e8 - 1e8) + 3 = 3, and 3 + 1e8 - 1e8 = 0.
  for (const bool backwards : {false, true}) {
    CoordinatorOnPaper hub(3);
    const std::vector<double> weights{1e8, -1e8, 3};
    for (int i = 0; i < 3; ++i) {
      const int rank = backwards ? 2 - i : i;
      hub.give(rank, 0, weights[static_cast<std::size_t>(rank)]);
    }
    CHECK(hub.take(0) == "mean 1");
  }
}

TEST_CASE("a lost replica is waited for no more, and what it gave to an open round is left out") {
  for (const bool has_given : {false, true}) {
    CAPTURE(has_given);
    CoordinatorOnPaper hub(3);
    for (const int rank : {0, 1, 2}) hub.synchronize(rank, 4);
    for (const int rank : {0, 1, 2}) hub.take(rank);
    hub.give(0, 0, 1);
    if (has_given) hub.give(2, 0, 100);
    hub.lose(2);
    CHECK(hub.take(0).empty());
    hub.give(1, 0, 2);
    CHECK(hub.take(0) == "mean 1.5");
    CHECK(hub.take(1) == "mean 1.5");
    hub.synchronize(0, 8);
    hub.synchronize(1, 8);
    CHECK(hub.take(0) == "synchronized");
    CHECK(hub.place(2).is_lost);
    CHECK(hub.place(2).steps == 4);
    CHECK(hub.place(1).steps == 8);
  }
}

TEST_CASE("the others go on when the replica that is waited for is lost or leaves") {
  for (const std::string how : {"lost", "leaves"}) {
    CAPTURE(how);
    CoordinatorOnPaper hub(2);
    hub.give(0, 0, 7);
    CHECK(hub.take(0).empty());
    if (how == "lost") hub.lose(1);
    if (how == "leaves") hub.hear(1, {.kind = kLeave});
    CHECK(hub.take(0) == "mean 7");
    CHECK(hub.place(1).is_lost == (how == "lost"));
    CHECK(hub.place(1).has_left == (how == "leaves"));
    if (how == "leaves") CHECK(hub.take(1) == "left");
    hub.lose(1);  // its connection ends
    CHECK(hub.place(1).is_lost == (how == "lost"));
  }
}

TEST_CASE("a stop is at the step of the furthest, and gives up the exchange it has begun") {
  CoordinatorOnPaper hub(3);
  hub.give(0, 0, 1);
  hub.give(2, 0, 1);
  hub.hear(1, {.kind = kStop, .step = 5});
  CHECK(hub.take(0) == "stop requested");
  CHECK(hub.take(2) == "stop requested");
  CHECK(hub.take(1).empty());
  hub.hear(0, {.kind = kStop, .step = 8});
  CHECK(hub.take(0).empty());
  hub.hear(2, {.kind = kStop, .step = 8});
  for (const int rank : {0, 1, 2}) CHECK(hub.take(rank) == "stop at 8");
  // What they had given is forgotten: all give anew.
  hub.give(1, 0, 3);
  CHECK(hub.take(1).empty());
  hub.give(0, 0, 1);
  hub.give(2, 0, 2);
  for (const int rank : {0, 1, 2}) CHECK(hub.take(rank) == "mean 2");
}

TEST_CASE("a stop gives up a meeting that some have come to") {
  CoordinatorOnPaper hub(3);
  hub.synchronize(0, 8);
  hub.synchronize(2, 8);
  for (const int rank : {0, 1, 2}) hub.hear(rank, {.kind = kStop, .step = 8});
  for (const int rank : {1, 2}) CHECK(hub.take(rank) == "stop requested");
  for (const int rank : {0, 1, 2}) CHECK(hub.take(rank) == "stop at 8");
  hub.synchronize(1, 8);
  CHECK(hub.take(1).empty());
  hub.synchronize(0, 8);
  hub.synchronize(2, 8);
  for (const int rank : {0, 1, 2}) CHECK(hub.take(rank) == "synchronized");
}

TEST_CASE("a stop before the first step is there") {
  CoordinatorOnPaper hub(2);
  hub.hear(0, {.kind = kStop, .step = 0});
  hub.hear(1, {.kind = kStop, .step = 0});
  CHECK(hub.take(0) == "stop at 0");
}

TEST_CASE("while a stop is asked no exchange is over, though who has asked is lost") {
  CoordinatorOnPaper hub(3);
  hub.give(0, 0, 1);
  hub.give(2, 0, 1);
  hub.hear(1, {.kind = kStop, .step = 5});
  hub.take(0);
  hub.take(2);
  hub.lose(1);
  CHECK(hub.take(0).empty());
  hub.hear(0, {.kind = kStop, .step = 8});
  hub.hear(2, {.kind = kStop, .step = 8});
  for (const int rank : {0, 2}) {
    CHECK(hub.take(rank) == "stop at 8");
    CHECK(hub.take(rank).empty());
  }
}

TEST_CASE("a replica that stops by itself gets the common stop step") {
  CoordinatorOnPaper hub(2);
  hub.hear(0, {.kind = kStop, .step = 3});
  hub.hear(1, {.kind = kStop, .step = 2});  // it heard of the stop itself
  CHECK(hub.take(1) == "stop requested");   // which was under way
  CHECK(hub.take(0) == "stop at 3");
  CHECK(hub.take(1) == "stop at 3");
}

TEST_CASE(
    "a replica that has sent its stop step is not dropped while rank 0 waits for it in a "
    "synchronization") {
  CoordinatorOnPaper hub(3);  // 2 is silent
  hub.give(0, 0, 1);
  hub.hear(1, {.kind = kStop, .step = 5});
  CHECK(hub.take(0) == "stop requested");
  hub.hear(0, {.kind = kStop, .step = 8});
  hub.hear(0, {.kind = kGiveUp});
  for (const int rank : {0, 1}) CHECK(hub.take(rank) == "stop at 8");
  hub.give(0, 0, 1);
  CHECK(hub.take(0).empty());
  hub.give(1, 0, 3);
  for (const int rank : {0, 1}) CHECK(hub.take(rank) == "mean 2");
}

TEST_CASE("rank 0 gives up whom it waits for, whatever for") {
  struct GiveUpCase {
    std::string waits_for;
    std::string answer;
  };
  const std::vector<GiveUpCase> cases{{"stop", "stop at 4"},
                                      {"part", "mean 2"},
                                      {"synchronized", "synchronized"},
                                      {"states sent", "states sent"}};
  for (const GiveUpCase& one : cases) {
    CAPTURE(one.waits_for);
    CoordinatorOnPaper hub(3);  // replica 1 comes, 2 does not
    const auto both = [&](const auto& say) {
      say(0);
      say(1);
    };
    if (one.waits_for == "stop") {
      both([&](int rank) { hub.hear(rank, {.kind = kStop, .step = 3 + rank}); });
      CHECK(hub.take(1) == "stop requested");
    }
    if (one.waits_for == "part") both([&](int rank) { hub.give(rank, 0, 1 + 2 * rank); });
    if (one.waits_for == "synchronized") both([&](int rank) { hub.synchronize(rank, 4); });
    if (one.waits_for == "states sent") {
      hub.hear(0, {.kind = kAwaitStates});
      hub.hear(1, {.kind = kStatesSent});
    }
    CHECK(hub.take(0).empty());
    hub.hear(0, {.kind = kGiveUp});
    CHECK(hub.take(0) == one.answer);
    // It is not lost, and not heard any more.
    CHECK_FALSE(hub.place(2).is_lost);
    hub.give(2, 0, 100);
    hub.give(0, 0, 1);
    hub.give(1, 0, 1);
    const std::string next = hub.take(1);
    CHECK((one.waits_for == "states sent" ? next : hub.take(1)) == "mean 1");
    CHECK(hub.take(2) == (one.waits_for == "stop" ? "stop requested" : ""));
    CHECK(hub.take(2).empty());
  }
}

TEST_CASE("the other replicas are sent each request of rank 0 and send their states") {
  CoordinatorOnPaper hub(4);
  hub.hear(0, {.kind = kRequest, .number = 2});
  for (const int rank : {1, 2, 3}) CHECK(hub.take(rank) == "request 2");
  CHECK(hub.take(0).empty());
  const auto body = [](double value) { return as_bytes(at::full({1}, value)); };
  hub.hear(1, {.kind = kState, .number = 0, .body = body(1)});
  hub.hear(1, {.kind = kStatesSent});
  hub.hear(2, {.kind = kState, .number = 0, .body = body(2)});
  hub.hear(0, {.kind = kAwaitStates});
  hub.lose(2);  // before it has given all
  CHECK(hub.take(0).empty());
  hub.hear(3, {.kind = kLeave});
  CHECK(hub.take(0) == "of 1: number 0, 1");
  CHECK(hub.take(0) == "states sent");
  CHECK(hub.take(0).empty());
  // Replicas that are lost or have left are sent no further request.
  hub.hear(0, {.kind = kRequest, .number = 1});
  CHECK(hub.take(2).empty());
  CHECK(hub.take(3) == "left");
  CHECK(hub.take(3).empty());
  hub.hear(0, {.kind = kAwaitStates});
  CHECK(hub.take(1) == "request 1");
  CHECK(hub.take(0).empty());
  hub.hear(1, {.kind = kState, .number = 0, .body = body(3)});
  hub.hear(1, {.kind = kStatesSent});
  CHECK(hub.take(0) == "of 1: number 0, 3");
  CHECK(hub.take(0) == "states sent");
  // Nothing is kept for the third.
  hub.hear(0, {.kind = kRequest, .number = 1});
  hub.hear(1, {.kind = kStatesSent});
  CHECK(hub.take(0).empty());  // it does not wait yet
  hub.hear(0, {.kind = kAwaitStates});
  CHECK(hub.take(0) == "states sent");
  hub.lose(1);
  CHECK(hub.take(0).empty());  // it waits for nobody's leave
}

}  // namespace
