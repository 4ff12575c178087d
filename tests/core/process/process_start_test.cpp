#include "lib/core/process/process_start.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "lib/core/clock.h"

namespace scaletrain::core {
namespace {

TEST_CASE("a process has a start, a zombie and a number that nobody has have none") {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  CHECK(start_ticks(child) >= start_ticks(::getpid()));
  CHECK(std::abs(start_time(child) - unix_time()) < 60);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK(start_ticks(child) == 0);
  CHECK(start_time(child) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(start_ticks(child) == 0);
}

TEST_CASE("boot and process namespace are known") {
  CHECK(this_boot().size() == 36);
  CHECK(this_pid_namespace().starts_with("pid:["));
}

}  // namespace
}  // namespace scaletrain::core
