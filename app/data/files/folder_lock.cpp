#include "app/data/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "lib/core/error.h"

namespace scaletrain::app {

core::Descriptor lock_folder(const std::string& folder) {
  core::Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw core::StorageError(folder, core::errno_text(errno));
  while (::flock(fd.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return fd;
}

}  // namespace scaletrain::app
