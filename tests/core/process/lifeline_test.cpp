#include "lib/core/process/lifeline.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

using scaletrain::core::Lifeline;

TEST_CASE("a process whose lifeline ends leaves with the status asked for") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    const Lifeline lifeline(ends[0], 75);
    ::pause();
  }
  ::close(ends[0]);
  ::close(ends[1]);  // the last writer: what the launcher's death does
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
}

TEST_CASE("a lifeline that is no longer needed ends without the pipe") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  { const Lifeline lifeline(ends[0], 75); }
  ::close(ends[0]);
  ::close(ends[1]);
}
