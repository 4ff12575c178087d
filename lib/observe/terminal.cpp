#include "lib/observe/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace scaletrain::observe {
namespace {

constexpr int kDefaultColumns = 80;

}  // namespace

void offer(int fd, const std::string& text, int wait_ms) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  if (poll(&ready, 1, wait_ms) != 1) return;
  [[maybe_unused]] const ssize_t ignored = ::write(fd, text.data(), text.size());
}

int columns(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns - 1;
  return size.ws_col - 1;
}

}  // namespace scaletrain::observe
