#include "launcher/agents/lost_replicas.h"

#include <doctest/doctest.h>

#include "tests/launcher/agents/agents_support.h"

namespace scaletrain::launcher {
namespace {

LostReplica lost(int number, int rank, bool followed = false) {
  return {.number = number, .failure = failure_of_rank(rank, followed ? 75 : 3, followed)};
}

TEST_CASE("a replica is lost once, and by what has brought it about") {
  LostReplicas replicas;
  CHECK(replicas.empty());
  CHECK(replicas.note(lost(2, 5, true)));
  CHECK(replicas.note(lost(1, 2)));
  CHECK_FALSE(replicas.note(lost(1, 3)));
  CHECK_FALSE(replicas.note(lost(2, 5, true)));
  CHECK(replicas.text() == "rank 5 (exit code 75), rank 2 (exit code 3)");
  CHECK(replicas.note(lost(2, 4)));
  CHECK_FALSE(replicas.note(lost(2, 5, true)));
  CHECK(replicas.count() == 2);
  CHECK(replicas.all().front().number == 2);
  CHECK(replicas.text() == "rank 4 (exit code 3), rank 2 (exit code 3)");
  replicas.clear();
  CHECK(replicas.empty());
}

TEST_CASE("a node is named once, whatever is lost with it") {
  LostReplicas replicas;
  for (const int number : {4, 5}) {
    CHECK(replicas.note({.number = number, .failure = {.node = 2, .rank = -1}}));
  }
  CHECK(replicas.note(lost(1, 2)));
  CHECK(replicas.text() == "node 2 (lost), rank 2 (exit code 3)");
}

}  // namespace
}  // namespace scaletrain::launcher
