#include "app/data/numbered_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "lib/core/disk.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

constexpr std::string_view kMark = ".tmp.";

}  // namespace

bool is_numbered(std::string_view file, std::string_view name,
                 std::initializer_list<std::string_view> endings) {
  if (!file.starts_with(name) || !file.substr(name.size()).starts_with('-')) return false;
  const std::string_view number = file.substr(name.size() + 1);
  const std::size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  return digits > 0 &&
         std::find(endings.begin(), endings.end(), number.substr(digits)) != endings.end();
}

std::filesystem::path unfinished(const std::filesystem::path& path) {
  return path.parent_path() / fmt::format(".{}{}{}", path.filename().string(), kMark, ::getpid());
}

std::optional<Unfinished> parse_unfinished(std::string_view file) {
  const std::size_t mark = file.rfind(kMark);
  if (mark == std::string_view::npos || !file.starts_with('.')) return std::nullopt;
  const std::string_view rest = file.substr(mark + kMark.size());
  pid_t pid = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
  const std::string_view ending = rest.substr(static_cast<std::size_t>(parsed.ptr - rest.data()));
  if (mark == 0 || parsed.ec != std::errc() || pid <= 0 || (!ending.empty() && ending != ".idx")) {
    return std::nullopt;
  }
  return Unfinished{file.substr(1, mark - 1), pid};
}

bool is_alive(pid_t process) { return ::kill(process, 0) == 0 || errno == EPERM; }

void remove_abandoned(const std::filesystem::path& folder, std::string_view name) {
  for (const auto& entry : storage::file_storage().list(folder.string())) {
    const auto left = parse_unfinished(entry.name);
    if (!left || !is_numbered(left->becomes, name, {".tar", ".bin", ".bin.mask"})) continue;
    if (!is_alive(left->owner)) core::system_disk().remove_all(folder / entry.name);
  }
}

}  // namespace scaletrain::app
