#include "lib/track/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/error.h"

namespace scaletrain::track {

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  core::system_disk().make_folders(path_.parent_path());
  open(O_CREAT | O_TRUNC);
}

void AppendFile::open(int flags) {
  core::Descriptor fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0644));
  if (!fd) {
    throw core::StorageError(path_.string(), "cannot be opened: " + core::errno_text(errno));
  }
  fd_ = std::move(fd);
}

void AppendFile::append(std::string_view bytes) {
  struct stat held = {};
  if (fstat(fd_.get(), &held) == 0 && held.st_nlink == 0) {
    throw core::StorageError(path_.string(), "was removed while it was written");
  }
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = errno;
      [[maybe_unused]] const int cut = ftruncate(fd_.get(), bytes_);
      throw core::StorageError(path_.string(), "cannot be written: " + core::errno_text(error));
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  bytes_ += static_cast<std::int64_t>(bytes.size());
}

void AppendFile::replace(std::string_view bytes) {
  core::write_durably(core::system_disk(), path_, bytes);
  open(0);
  bytes_ = static_cast<std::int64_t>(bytes.size());
}

}  // namespace scaletrain::track
