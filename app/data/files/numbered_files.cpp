#include "app/data/files/numbered_files.h"

#include <algorithm>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/storage/storage.h"

namespace scaletrain::app {
namespace {

constexpr std::string_view kIndex = ".idx";

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
  return path.parent_path() / core::temporary_name("." + path.filename().string());
}

std::optional<Unfinished> parse_unfinished(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  if (name.ends_with(kIndex)) name.resize(name.size() - kIndex.size());
  const std::optional<core::Temporary> temporary = core::parse_temporary(name);
  if (!temporary || temporary->name.size() < 2 || !temporary->name.starts_with('.')) {
    return std::nullopt;
  }
  return Unfinished{.becomes = temporary->name.substr(1),
                    .owner = temporary->writer,
                    .is_in_use = core::has_living_writer(file, *temporary)};
}

void remove_abandoned(const std::filesystem::path& folder, std::string_view name) {
  for (const auto& entry : storage::file_storage().list(folder.string())) {
    const auto left = parse_unfinished(folder / entry.name);
    if (!left || !is_numbered(left->becomes, name, {".tar", ".bin", ".bin.mask"})) continue;
    if (!left->is_in_use) core::system_disk().remove_all(folder / entry.name);
  }
}

}  // namespace scaletrain::app
