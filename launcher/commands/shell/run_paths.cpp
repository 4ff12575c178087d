#include "launcher/commands/shell/run_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lib/core/text/home.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_checkpoints(const fs::path& path) { return is_folder(path / "checkpoints"); }

// Adds `shown` + the name of each entry of `folder` that `accept` takes.
template <typename Accept>
void add_entries(const fs::path& folder, const std::string& shown, const Accept& accept,
                 std::vector<std::string>& paths) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (accept(entry->path())) paths.push_back(shown + entry->path().filename().string());
  }
}

}  // namespace

std::vector<std::string> run_paths(const std::string& typed, bool checkpoints) {
  const std::string shown = typed.substr(0, typed.rfind('/') + 1);  // "" without a slash
  const fs::path folder = shown.empty() ? "." : core::expand_home(shown);
  std::vector<std::string> paths;
  if (checkpoints && has_checkpoints(folder)) {
    add_entries(folder / "checkpoints", shown + "checkpoints/", is_folder, paths);
  } else if (checkpoints && folder.parent_path().filename() == "checkpoints") {
    add_entries(folder, shown, is_folder, paths);
  } else {
    add_entries(folder, shown, has_checkpoints, paths);
    if (shown.empty()) add_entries("runs", "runs/", has_checkpoints, paths);
  }
  std::erase_if(paths, [&](const std::string& path) { return !path.starts_with(typed); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace scaletrain::launcher
