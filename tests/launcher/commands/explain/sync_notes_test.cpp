#include "launcher/commands/explain/sync_notes.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {

TEST_CASE("explain says what async does without, and whose loss ends the job") {
  using Notes = std::vector<std::string>;
  CHECK(sync_notes({.name = "every_step", .steps = 1}, 4).empty());
  CHECK(sync_notes({.name = "periodic", .steps = 8}, 4).empty());
  CHECK(sync_notes({.name = "async", .steps = 8}, 1).empty());
  CHECK(
      sync_notes({.name = "async", .steps = 8, .staleness = 2}, 4) ==
      Notes{"sync: each of 4 replicas exchanges weights after every 8 steps of its own, at most 2 "
            "times more often than the slowest: neither the bits nor the order of samples are "
            "those of another run",
            "sync: a replica that is lost does not end the job, rank 0's does; the job then exits "
            "with 77"});
}

}  // namespace scaletrain::launcher
