#include "lib/core/process/lifeline.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace scaletrain::core {
namespace {

void leave_at_end(int fd, int stop_fd, int exit_status) {
  std::array<pollfd, 2> watched{pollfd{fd, POLLIN, 0}, pollfd{stop_fd, POLLIN, 0}};
  while (::poll(watched.data(), watched.size(), -1) < 0 && errno == EINTR) {
  }
  // Nothing is ever written to the pipe: any event on it is its end.
  if (watched[1].revents == 0) ::_exit(exit_status);
}

}  // namespace

Lifeline::Lifeline(int fd, int exit_status)
    : stop_fd_(::eventfd(0, EFD_CLOEXEC)), watcher_(leave_at_end, fd, stop_fd_, exit_status) {}

Lifeline::~Lifeline() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof one);
  watcher_.join();
  ::close(stop_fd_);
}

}  // namespace scaletrain::core
