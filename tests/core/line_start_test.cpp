#include "lib/core/line_start.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "lib/core/descriptor.h"

namespace scaletrain::core {
namespace {

// Puts `fd` in the place of standard error for as long as it lives.
class AsErrorStream {
 public:
  explicit AsErrorStream(int fd) : before_(dup(STDERR_FILENO)) {
    REQUIRE(dup2(fd, STDERR_FILENO) == STDERR_FILENO);
  }
  ~AsErrorStream() { dup2(before_.get(), STDERR_FILENO); }
  AsErrorStream(const AsErrorStream&) = delete;

 private:
  Descriptor before_;
};

// What brings the next text to the beginning of a line, after others may have written to `fd`.
std::string start_after_others(int fd) {
  const AsErrorStream place(fd);
  suspect_error_stream();
  return to_line_start();
}

TEST_CASE("what this process wrote itself is known") {
  CHECK(to_line_start().empty());
  note_error_stream('x');
  CHECK(to_line_start() == "\n");
  CHECK(to_line_start().empty());  // once
  note_error_stream('x');
  suspect_error_stream();  // one that is open stays open
  CHECK(to_line_start() == "\n");
  note_error_stream('x');
  note_error_stream('\n');
  CHECK(to_line_start().empty());
}

TEST_CASE("the last byte of a file shows whether a line is open") {
  const Descriptor file(open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  REQUIRE(file);
  CHECK(start_after_others(file.get()).empty());
  REQUIRE(::write(file.get(), "50 %", 4) == 4);
  CHECK(start_after_others(file.get()) == "\n");
  REQUIRE(::write(file.get(), "\n", 1) == 1);
  CHECK(start_after_others(file.get()).empty());
}

TEST_CASE("for a pipe an unfinished line is assumed") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const Descriptor read(ends[0]), write(ends[1]);
  CHECK(start_after_others(write.get()) == "\n");
}

TEST_CASE("on a terminal as many spaces as a line is long end at the beginning of one") {
  winsize size{.ws_row = 25, .ws_col = 12, .ws_xpixel = 0, .ws_ypixel = 0};
  int ours = -1, terminal = -1;
  REQUIRE(openpty(&ours, &terminal, nullptr, nullptr, &size) == 0);
  const Descriptor first(ours), second(terminal);
  CHECK(start_after_others(terminal) == "            \r");
  size.ws_col = 0;  // not known
  REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);
  CHECK(start_after_others(terminal) == "\n");
}

}  // namespace
}  // namespace scaletrain::core
