#include "launcher/workers/stacks.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>

namespace scaletrain::launcher {
namespace {

TEST_CASE("stack frames show demangled name, offset and file") {
  const auto stacks = parse_stacks(
      "thread 42 main\n"
      "/lib/libc.so.6(pause+0x1c) [0x7f00]\n"
      "/bin/worker(_ZN10scaletrain5train7Trainer3runEv+0x2a)[0x55]\n"
      "/bin/worker(+0x1234) [0x56]\n"
      "thread 43 data\x1b\n"
      "nonsense\n");
  REQUIRE(stacks.size() == 2);
  CHECK(stacks[0].thread == "thread 42 main");
  CHECK(stacks[0].frames == std::vector<std::string>{"pause + 0x1c (libc.so.6)",
                                                     "scaletrain::train::Trainer::run() + 0x2a "
                                                     "(worker)",
                                                     "+0x1234 (worker)"});
  CHECK(stacks[1].thread == "thread 43 data\\x1b");
  CHECK(stacks[1].frames == std::vector<std::string>{"nonsense"});
}

TEST_CASE("a worker that never offered its stacks is not sent a signal that would end it") {
  const auto file = core::make_beat_file();
  CHECK(
      capture_stacks(getpid(), core::BeatReader(file.get()), core::now() + std::chrono::seconds(1))
          .empty());
}

}  // namespace
}  // namespace scaletrain::launcher
