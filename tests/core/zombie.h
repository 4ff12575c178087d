// A process that has ended and is not reaped.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scaletrain::test {

class Zombie {
 public:
  Zombie() : pid(::fork()) {
    if (pid == 0) ::_exit(0);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  }
  ~Zombie() { ::waitpid(pid, nullptr, 0); }
  Zombie(const Zombie&) = delete;
  Zombie& operator=(const Zombie&) = delete;

  const pid_t pid;
};

}  // namespace scaletrain::test
