#include "lib/core/process/stack_dump.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>

namespace {

std::string written_to(int fd) {
  std::string text(1 << 16, '\0');
  const ssize_t count = pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

}  // namespace

TEST_CASE("a thread that spins and one that sleeps write their stacks and go on") {
  static const int fd = memfd_create("stacks", MFD_CLOEXEC);
  static std::atomic<std::uint32_t> written{0};
  const int signal = scaletrain::core::install_stack_dump(fd, written);
  std::atomic<bool> stop{false};
  std::array<std::atomic<long>, 2> numbers{};
  std::thread spins([&] {
    numbers[0] = syscall(SYS_gettid);
    while (!stop) {
    }
  });
  std::thread sleeps([&] {
    numbers[1] = syscall(SYS_gettid);
    stop.wait(false);
  });
  std::uint32_t expected = 0;
  for (const auto& number : numbers) {
    while (number == 0) std::this_thread::yield();
    REQUIRE(syscall(SYS_tgkill, getpid(), number.load(), signal) == 0);
    ++expected;
    while (written != expected) std::this_thread::yield();
  }
  stop = true;
  stop.notify_all();
  spins.join();
  sleeps.join();
  const std::string text = written_to(fd);
  for (const auto& number : numbers) {
    CHECK(text.find("thread " + std::to_string(number) + " ") != std::string::npos);
  }
  CHECK(std::count(text.begin(), text.end(), '\n') > 4);
  CHECK(text.find("libc.so") != std::string::npos);  // where threads begin
}
