#include "lib/core/process/stack_dump.h"

#include <execinfo.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace scaletrain::core {
namespace {

constexpr int kMostFrames = 64;
constexpr int kOwnFrames = 2;  // the handler, and the kernel's frame that called it

int stack_fd = -1;
std::atomic<std::uint32_t>* stacks_written = nullptr;

void append(std::array<char, 64>& line, std::size_t& length, const char* text) {
  const std::size_t bytes = std::min(std::strlen(text), line.size() - length);
  std::memcpy(line.data() + length, text, bytes);
  length += bytes;
}

void append(std::array<char, 64>& line, std::size_t& length, long number) {
  std::array<char, 24> digits{};
  std::size_t at = digits.size() - 1;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  append(line, length, digits.data() + at);
}

void write_header() {
  std::array<char, 64> line{};
  std::array<char, 17> name{};
  prctl(PR_GET_NAME, name.data());
  std::size_t length = 0;
  append(line, length, "thread ");
  append(line, length, syscall(SYS_gettid));
  append(line, length, " ");
  append(line, length, name.data());
  append(line, length, "\n");
  [[maybe_unused]] const ssize_t ignored = write(stack_fd, line.data(), length);
}

// The handler neither allocates nor takes a lock that the interrupted code could hold, except the
// loader's: a thread that hangs inside dlopen writes no stack.
void on_stack_signal(int /*signal*/) {
  const int error = errno;
  write_header();
  std::array<void*, kMostFrames> frames;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const int count = backtrace(frames.data(), kMostFrames);
  if (count > kOwnFrames) {
    backtrace_symbols_fd(frames.data() + kOwnFrames, count - kOwnFrames, stack_fd);
  }
  stacks_written->fetch_add(1);
  errno = error;
}

}  // namespace

int install_stack_dump(int fd, std::atomic<std::uint32_t>& written) {
  std::array<void*, 1> first{};
  backtrace(first.data(), 1);  // loads the unwinder now, as the handler must not
  stack_fd = fd;
  stacks_written = &written;
  const int signal = SIGRTMIN + 6;
  struct sigaction action = {};
  action.sa_handler = on_stack_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
  return signal;
}

}  // namespace scaletrain::core
