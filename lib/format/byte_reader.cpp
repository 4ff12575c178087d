#include "lib/format/byte_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"

namespace scaletrain::format {

ByteReader::ByteReader(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a FIFO that nobody writes must not wait.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) {
    core::throw_read_fault(path_, errno);
    throw core::CheckpointError(path_.string(), "cannot be read: " + core::errno_text(errno),
                                "check the path");
  }
  struct stat status = {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    throw core::CheckpointError(path_.string(), "is not a regular file",
                                "name a file, not a folder or a device");
  }
  bytes_ = status.st_size;
}

ByteReader::~ByteReader() { ::close(fd_); }

void ByteReader::read(std::int64_t position, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(fd_, out.data(), out.size(), position);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      core::throw_read_fault(path_, errno);
      throw core::CheckpointError(path_.string(), "cannot be read: " + core::errno_text(errno),
                                  "check the disk");
    }
    if (count == 0) {
      throw core::CheckpointError(path_.string(),
                                  fmt::format("ends at byte {} while it is read", position),
                                  "another program changed it: use another copy");
    }
    out = out.subspan(static_cast<std::size_t>(count));
    position += count;
  }
}

}  // namespace scaletrain::format
