#include "lib/dist/lost_peer.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "lib/core/error.h"

namespace scaletrain::dist {

TEST_CASE("a lost peer is reported with rank, collective and the first line of the cause") {
  CHECK_THROWS_WITH_AS(
      throw_lost(3, "the gradients were", std::runtime_error("[pair.cc:1] reset by peer\nstack")),
      "rank 3: the gradients were not completed: a peer was lost or the timeout expired (reset by "
      "peer)\n"
      "  the log of the rank that failed first has the cause; resume from the newest checkpoint",
      core::StoppedError);
}

TEST_CASE("out of memory is reported as such, with all lines of the cause") {
  CHECK_THROWS_WITH_AS(
      throw_lost(0, "connect was",
                 std::runtime_error("NCCL error\nCuda failure 2 'out of memory'")),
      "rank 0: connect was not completed: memory ran out (NCCL error\nCuda failure 2 'out of "
      "memory')\n"
      "  lower /batch/per_device and raise /batch/accumulate, or set \"recompute\": "
      "\"all\"; "
      "`scaletrain bench memory RECIPE` shows the savings of each technique",
      core::OutOfMemoryError);
}

TEST_CASE("a thread that the system refuses is no lost peer") {
  const std::system_error refused(EAGAIN, std::generic_category());
  CHECK_THROWS_WITH_AS(
      throw_lost(2, "connect was", refused),
      "rank 2: cannot start a thread: Resource temporarily unavailable (EAGAIN)\n  "
      "raise the limit of processes and threads: ulimit -u, --pids-limit of a "
      "container, TasksMax of a service (pids.max of the cgroup)",
      core::Error);
  CHECK_NOTHROW(throw_thread_refusal("rank 2", std::runtime_error("reset by peer")));
}

}  // namespace scaletrain::dist
