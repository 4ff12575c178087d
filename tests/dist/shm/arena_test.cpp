#include "lib/dist/shm/arena.h"

#include <c10/util/Exception.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "lib/core/error.h"
#include "tests/dist/shm/ranks_support.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;

constexpr ArenaShape kSmall{.ranks = 2, .slots = 3, .slot_bytes = 64};

struct Waiting {
  std::atomic<bool> stopped = false;
  Patience patience(std::chrono::milliseconds limit = 30s) const {
    return {.deadline = core::now() + limit, .stopped = &stopped};
  }
};

template <class Body>
std::string thrown_by(const Body& body) {
  try {
    body();
  } catch (const c10::DistError& error) {
    return error.what_without_backtrace();
  }
  return "";
}

TEST_CASE("what a rank publishes is read by the others") {
  const auto arenas = testing::make_arenas(kSmall);
  const Waiting waiting;
  std::strcpy(reinterpret_cast<char*>(arenas[0]->slot(0, 0)), "from 0");
  arenas[0]->publish(0);
  arenas[1]->await(0, 0, waiting.patience());
  CHECK(std::string(reinterpret_cast<const char*>(arenas[1]->slot(0, 0))) == "from 0");
  CHECK(arenas[1]->shape().slots == 3);
  CHECK(arenas[1]->slot(1, 5) - arenas[1]->slot(1, 2) == 0);  // slots take turns
  CHECK(arenas[1]->slot(1, 2) - arenas[1]->slot(1, 1) >= 64);
}

TEST_CASE("a slot is written again when all others are done with it") {
  const auto arenas = testing::make_arenas(kSmall);
  const Waiting waiting;
  for (std::uint32_t round = 0; round < 3; ++round) {
    arenas[0]->await_free(round, waiting.patience());
    arenas[0]->publish(round);
  }
  CHECK(thrown_by([&] { arenas[0]->await_free(3, waiting.patience(0ms)); }) ==
        "rank 1 of the group did not come in time");
  const auto again = testing::make_arenas(kSmall);
  std::jthread reader([&] {
    again[1]->await(0, 0, waiting.patience());
    again[1]->done(0);
  });
  again[0]->publish(0);
  again[0]->await_free(3, waiting.patience());
}

TEST_CASE("the file has no name, and none but the other rank's is opened") {
  const ShmArena arena(kSmall);
  const std::string address = arena.address();
  const std::string path = address.substr(0, address.find(' '));
  CHECK(std::filesystem::read_symlink(path).string().ends_with("(deleted)"));
  CHECK_THROWS_WITH_AS(ShmArena(path + " 1", 1),
                       "shared memory: the other rank's file: No such device or address (ENXIO)",
                       core::Error);
  CHECK_THROWS_AS(ShmArena("/proc/self/fd/0 1", 1), core::Error);
  CHECK_THROWS_WITH_AS(ShmArena("/proc/self/fd/9999 1", 1),
                       "shared memory: opening it by /proc: No such file or directory (ENOENT)",
                       core::Error);
}

TEST_CASE("a wait ends when this rank stops, and the others hear that it gives up") {
  const auto arenas = testing::make_arenas(kSmall);
  Waiting waiting;
  std::string said;
  std::jthread waits(
      [&] { said = thrown_by([&] { arenas[0]->await(1, 0, waiting.patience()); }); });
  waiting.stopped = true;
  waits.join();
  CHECK(said == "this rank has ended the exchange");
  const Waiting other;
  CHECK(thrown_by([&] { arenas[1]->await(0, 0, other.patience()); }) ==
        "rank 0 of the group has given up");
}

// A process that opens the arena as rank 1, publishes `rounds` and is killed.
void live_and_die(const std::string& address, std::uint32_t rounds) {
  const pid_t pid = fork();
  if (pid == 0) {
    ShmArena arena(address, 1);
    for (std::uint32_t round = 0; round < rounds; ++round) arena.publish(round);
    raise(SIGKILL);
  }
  waitpid(pid, nullptr, 0);
}

TEST_CASE("a rank that was killed is named soon; what it published before counts") {
  ShmArena arena(kSmall);
  live_and_die(arena.address(), 1);
  const Waiting waiting;
  const core::SteadyTime begin = core::now();
  arena.await(1, 0, waiting.patience());
  CHECK(thrown_by([&] { arena.await(1, 1, waiting.patience()); }) == "rank 1 of the group is gone");
  CHECK(core::seconds_since(begin) < 5);
}

TEST_CASE("a lost rank is reported to ranks that wait for it indirectly") {
  constexpr ArenaShape kThree{.ranks = 3, .slots = 3, .slot_bytes = 64};
  ShmArena first(kThree);
  ShmArena third(first.address(), 2);
  live_and_die(first.address(), 0);
  const Waiting waiting;
  std::string said;
  std::jthread waits([&] { said = thrown_by([&] { first.await(2, 0, waiting.patience()); }); });
  CHECK(thrown_by([&] { third.await(1, 0, waiting.patience()); }) == "rank 1 of the group is gone");
  waits.join();
  CHECK(said == "rank 1 of the group is gone");
}

TEST_CASE("counters may wrap around") {
  const auto arenas = testing::make_arenas(kSmall);
  const Waiting waiting;
  const std::uint32_t last = 0xffffffffU;
  for (std::uint32_t round = 0x7ffffff0U; round < 0x7ffffff4U; ++round) arenas[0]->publish(round);
  arenas[0]->publish(last - 1);
  arenas[1]->await(0, last - 1, waiting.patience());
  arenas[0]->publish(last);
  arenas[0]->publish(0);
  arenas[1]->await(0, last, waiting.patience());
  arenas[1]->await(0, 0, waiting.patience());
}

}  // namespace
}  // namespace scaletrain::dist
