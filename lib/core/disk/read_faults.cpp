#include "lib/core/disk/read_faults.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

namespace fs = std::filesystem;

constexpr std::array kPathErrors{ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG};

[[noreturn]] void refuse(const fs::path& path, int error) {
  throw_read_fault(path, error);
  throw StorageError(path.string(), "cannot be read: " + errno_text(error),
                     "check the path and its permissions");
}

}  // namespace

void throw_read_fault(const fs::path& path, int error) {
  if (std::find(kPathErrors.begin(), kPathErrors.end(), error) != kPathErrors.end()) return;
  const std::string found = "cannot be read: " + errno_text(error);
  if (error == EMFILE || error == ENFILE) {
    throw OutOfMemoryError(path.string(), found, "raise the limit of open files: ulimit -n 65536");
  }
  if (error == ENOMEM) throw OutOfMemoryError(path.string(), found, "leave more memory free");
  throw StorageError(path.string(), found, "check the disk");
}

fs::file_type type_at(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none) refuse(path, error.value());
  return type;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) refuse(folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace scaletrain::core
