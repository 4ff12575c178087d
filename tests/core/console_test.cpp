#include "lib/core/console.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/log.h"

namespace scaletrain::core {
namespace {

using std::chrono::milliseconds;

// Two ends, both blocking.
struct Ends {
  explicit Ends(bool socket) {
    std::array<int, 2> ends{};
    REQUIRE((socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())
                    : pipe2(ends.data(), O_CLOEXEC)) == 0);
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  Descriptor read, write;
};

TEST_CASE("a full pipe and a full socket take nothing, and hold nobody up") {
  for (const bool socket : {false, true}) {
    const Ends ends(socket);
    Console console(ends.write.get());
    const std::string text(1 << 20, 'x');
    std::size_t taken = 0;
    while (const std::size_t count = console.write_some(text)) taken += count;
    CHECK(taken > 0);
    CHECK(console.taken() == taken);
    CHECK_FALSE(console.wait(milliseconds(10)));
    CHECK_FALSE(console.gone());
    std::string back(taken, '\0');
    CHECK(read(ends.read.get(), back.data(), back.size()) > 0);
    CHECK(console.wait(milliseconds(10)));
    // The flag is not set on what others share.
    CHECK((fcntl(ends.write.get(), F_GETFL) & O_NONBLOCK) == 0);
  }
}

TEST_CASE("a console that nobody reads is gone") {
  std::signal(SIGPIPE, SIG_IGN);
  for (const bool socket : {false, true}) {
    Ends ends(socket);
    Console console(ends.write.get());
    ends.read.reset();
    CHECK(console.write_some("text") == 0);
    CHECK(console.gone());
    CHECK(console.fd() == -1);
  }
}

TEST_CASE("a file is written to where its descriptor stands") {
  const Descriptor file(open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  REQUIRE(file);
  REQUIRE(write(file.get(), "one ", 4) == 4);
  Console console(file.get());
  CHECK(console.write_some("two") == 3);
  std::array<char, 8> text{};
  CHECK(pread(file.get(), text.data(), text.size(), 0) == 7);
  CHECK(std::string(text.data()) == "one two");
}

TEST_CASE("log lines wait once for a console that takes nothing") {
  const Ends ends(false);
  const Descriptor before(dup(STDERR_FILENO));
  REQUIRE(dup2(ends.write.get(), STDERR_FILENO) == STDERR_FILENO);
  limit_log_wait(milliseconds(50));
  const SteadyTime start = now();
  for (int i = 0; i < 1000; ++i) log_line(std::string(10'000, 'x'));
  const double seconds = seconds_since(start);
  std::string drained(1 << 20, '\0');
  REQUIRE(read(ends.read.get(), drained.data(), drained.size()) > 0);
  log_line("it takes something again");
  const ssize_t count = read(ends.read.get(), drained.data(), drained.size());
  dup2(before.get(), STDERR_FILENO);
  limit_log_wait(milliseconds(1000));  // of the test's own console again
  CHECK(seconds < 5);
  REQUIRE(count > 0);
  drained.resize(static_cast<std::size_t>(count));
  CHECK(drained.ends_with("it takes something again\n"));
}

}  // namespace
}  // namespace scaletrain::core
