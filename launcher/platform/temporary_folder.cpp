#include "launcher/platform/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "lib/core/error.h"

namespace scaletrain::launcher {

std::filesystem::path temporary_folder() {
  const char* const named = std::getenv("TMPDIR");
  for (const char* const folder : {named, "/tmp"}) {
    if (folder == nullptr || *folder == '\0') continue;
    std::error_code absent;
    if (std::filesystem::is_directory(folder, absent) && access(folder, W_OK | X_OK) == 0) {
      return folder;
    }
  }
  throw core::StorageError("TMPDIR", "neither it nor /tmp is a folder that can be written to",
                           "set TMPDIR to one that can: TMPDIR=FOLDER scaletrain ...");
}

std::filesystem::path make_temporary_folder(const std::string& label,
                                            const std::filesystem::path& parent) {
  const std::filesystem::path folder = parent.empty() ? temporary_folder() : parent;
  std::string path = std::filesystem::absolute(folder / (label + "XXXXXX")).string();
  if (::mkdtemp(path.data()) != nullptr) return path;
  const std::string reason = core::errno_text(errno);
  if (!parent.empty()) {
    throw core::StorageError(path, "cannot be made: " + reason, "name a folder with free space");
  }
  throw core::StorageError(path, "cannot be made: " + reason,
                           "set TMPDIR to a folder with free space: TMPDIR=FOLDER scaletrain ...");
}

}  // namespace scaletrain::launcher
