#include "lib/core/disk/name_link.h"

#include <cstdint>
#include <system_error>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxNameBytes = 256;

// "" for what is no name.
std::string read_name(const fs::path& file) {
  try {
    std::string name = read_file(file, kMaxNameBytes, ExitCode::kStorage);
    if (name.ends_with('\n')) name.pop_back();
    return name.find_first_of(std::string("/\n\0", 3)) == std::string::npos ? name : "";
  } catch (const Error&) {  // a folder, a longer file, or one that cannot be read
    return "";
  }
}

}  // namespace

std::string read_name_link(const fs::path& link) {
  std::error_code no_link;
  const fs::path target = fs::read_symlink(link, no_link);
  if (!no_link) return target.string();
  return fs::is_regular_file(link, no_link) ? read_name(link) : "";
}

std::string point_name_link(Disk& disk, const std::string& target, const fs::path& link) {
  constexpr int kTries = 2;  // an error may come once
  std::string why;
  for (int i = 0; i < kTries; ++i) {
    try {
      replace_link(disk, target, link);
      return "";
    } catch (const StorageError& error) {
      why = error.found();
    }
  }
  write_durably(disk, link, target + "\n");
  return why;
}

}  // namespace scaletrain::core
