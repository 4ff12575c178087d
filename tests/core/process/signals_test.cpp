#include "lib/core/process/signals.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using scaletrain::core::install_stop_handlers;
using scaletrain::core::stop_reason;
using scaletrain::core::StopReason;

namespace {

// The status of a child that runs `body`; a child, because what was heard stays heard.
int status_of(int (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    install_stop_handlers();
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int heard() { return static_cast<int>(stop_reason()); }

}  // namespace

TEST_CASE("a stop is remembered with its first reason") {
  CHECK(status_of([] { return heard(); }) == static_cast<int>(StopReason::kNone));
  CHECK(status_of([] { return ::raise(SIGTERM) + heard(); }) ==
        static_cast<int>(StopReason::kTerminate));
  CHECK(status_of([] { return ::raise(SIGUSR1) + heard(); }) ==
        static_cast<int>(StopReason::kTerminate));
  CHECK(status_of([] { return ::raise(SIGUSR2) + ::raise(SIGUSR2) + heard(); }) ==
        static_cast<int>(StopReason::kTerminate));
  CHECK(status_of([] { return ::raise(SIGINT) + ::raise(SIGTERM) + heard(); }) ==
        static_cast<int>(StopReason::kInterrupt));
}

TEST_CASE("a second Ctrl-C ends the process at once") {
  CHECK(status_of([] { return ::raise(SIGINT) + ::raise(SIGINT) + 7; }) == 130);
}
