#include "lib/local_sgd/coordinator.h"

#include <doctest/doctest.h>

#include "tests/local_sgd/coordinator_on_paper.h"

namespace {

using namespace scaletrain;
using namespace scaletrain::local_sgd;
using testing::CoordinatorOnPaper;

TEST_CASE("rank 0 is notified when all others have left or are lost") {
  CoordinatorOnPaper hub(3);
  hub.hear(0, {.kind = kLeave});
  CHECK(hub.take(0) == "left");
  hub.hear(0, {.kind = kAwaitAll});
  hub.hear(1, {.kind = kLeave});
  CHECK(hub.take(0).empty());
  hub.lose(2);
  CHECK(hub.take(0) == "all left");
  hub.lose(1);  // its connection ends
  CHECK(hub.take(0).empty());
}

TEST_CASE("rank 0 that leaves last is notified that all have left when it asks") {
  CoordinatorOnPaper hub(2);
  hub.hear(1, {.kind = kLeave});
  hub.hear(0, {.kind = kLeave});
  CHECK(hub.take(0) == "left");
  CHECK(hub.take(0).empty());
  hub.hear(0, {.kind = kAwaitAll});
  CHECK(hub.take(0) == "all left");
}

TEST_CASE("a replica has left when all of its ranks have") {
  CoordinatorOnPaper hub(2, 2);
  hub.hear(2, {.kind = kLeave});
  CHECK(hub.take(2) == "left");
  CHECK_FALSE(hub.place(1).has_left);
  hub.lose(2);  // its connection ends
  CHECK_FALSE(hub.place(1).is_lost);
  hub.hear(0, {.kind = kLeave});
  hub.hear(0, {.kind = kAwaitAll});
  CHECK(hub.take(0) == "left");
  CHECK(hub.take(0).empty());
  hub.hear(3, {.kind = kLeave});
  CHECK(hub.place(1).has_left);
  CHECK(hub.take(0) == "all left");  // rank 1 is rank 0's own to wait for
  hub.hear(1, {.kind = kLeave});
  CHECK(hub.take(0).empty());  // it has heard that once
}

TEST_CASE("a replica of which one has left and another is lost is lost") {
  CoordinatorOnPaper hub(2, 2);
  hub.hear(2, {.kind = kLeave});
  hub.lose(3);
  CHECK(hub.place(1).is_lost);
  CHECK_FALSE(hub.place(1).has_left);
}

}  // namespace
