#include "lib/core/disk/disk_faults.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {

void throw_disk_fault(const std::filesystem::path& path, std::string_view action, int error) {
  std::string remedy = "choose another folder or correct its permissions";
  if (error == ENOSPC || error == EDQUOT)
    remedy = "free space on this disk or choose another folder";
  if (error == EFBIG) {
    remedy = "raise the limit of file sizes (ulimit -f), or use a file system for larger files";
  }
  if (error == EIO) remedy = "the disk reports a fault: check it, or choose another folder";
  throw StorageError(path.string(), fmt::format("cannot {}: {}", action, errno_text(error)),
                     remedy);
}

}  // namespace scaletrain::core
