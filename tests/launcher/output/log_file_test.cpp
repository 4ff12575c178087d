#include "launcher/output/log_file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "lib/core/log.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("a log that cannot be written is given up with one warning") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const core::Descriptor ours(ends[0]), console(ends[1]);
  const core::Descriptor before(dup(STDERR_FILENO));
  REQUIRE(dup2(console.get(), STDERR_FILENO) == STDERR_FILENO);
  core::limit_log_wait(std::chrono::milliseconds(1000));  // of this console
  LogFile file("/dev/full");
  CHECK(file);
  file.append("one\n");
  file.append("two\n");
  dup2(before.get(), STDERR_FILENO);
  core::limit_log_wait(std::chrono::milliseconds(1000));
  CHECK_FALSE(file);
  std::array<char, 1000> text{};
  REQUIRE(read(ours.get(), text.data(), text.size() - 1) > 0);
  CHECK(std::string(text.data()) ==
        "warning: /dev/full: No space left on device (ENOSPC); nothing more is written to it\n");
}

}  // namespace
}  // namespace scaletrain::launcher
