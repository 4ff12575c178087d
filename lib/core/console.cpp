#include "lib/core/console.h"

#include <fcntl.h>
#include <linux/limits.h>  // PIPE_BUF
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "lib/core/line_start.h"

namespace scaletrain::core {
namespace {

bool leads_to_error_stream(const struct stat& status) {
  struct stat error {};
  return fstat(STDERR_FILENO, &error) == 0 && error.st_dev == status.st_dev &&
         error.st_ino == status.st_ino;
}

bool never_waits(const struct stat& status) {
  return S_ISREG(status.st_mode) ||
         (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3));  // /dev/null
}

}  // namespace

Console::Console(int fd) : fd_(fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  is_error_stream_ = leads_to_error_stream(status);
  never_waits_ = never_waits(status);
  // A file has a place in it to write at, which another opening would not share.
  if (!S_ISFIFO(status.st_mode) && isatty(fd) != 1) return;
  again_ = Descriptor(open(path_of(fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

std::size_t Console::write_some(std::string_view text) {
  if (gone() || (!again_ && !never_waits_ && !wait({}))) return 0;
  // POLLOUT promises room for PIPE_BUF bytes in a pipe: a write of no more cannot block.
  if (!again_ && !never_waits_) text = text.substr(0, PIPE_BUF);
  const ssize_t count = is_socket_
                            ? send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                            : write(fd(), text.data(), text.size());
  if (count < 0 && errno != EINTR && errno != EAGAIN) give_up();
  if (count <= 0) return 0;
  taken_ += static_cast<std::size_t>(count);
  if (is_error_stream_) note_error_stream(text[static_cast<std::size_t>(count) - 1]);
  return static_cast<std::size_t>(count);
}

bool Console::wait(std::chrono::milliseconds time) const {
  pollfd watched{.fd = fd(), .events = POLLOUT, .revents = 0};
  return poll(&watched, 1, static_cast<int>(time.count())) > 0;
}

void Console::give_up() {
  again_.reset();
  fd_ = -1;
}

}  // namespace scaletrain::core
