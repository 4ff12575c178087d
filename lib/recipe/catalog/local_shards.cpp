#include "lib/recipe/catalog/local_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lib/core/printable.h"
#include "lib/core/text/compressed_name.h"
#include "lib/core/text/glob.h"

namespace scaletrain::recipe {
namespace {

namespace fs = std::filesystem;

// Returns the files in `folder` whose names `fits` accepts.
template <class Fits>
std::vector<std::string> files_in(const fs::path& folder, const Fits& fits) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().string();
    std::error_code absent;
    if (name.starts_with('.') || !fits(name) || it->is_directory(absent)) continue;
    files.push_back((folder / name).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// For a folder without shards: advice that names a subfolder with some.
std::string where_instead(const fs::path& folder) {
  std::error_code failed;
  std::vector<fs::path> folders;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code absent;
    if (it->is_directory(absent)) folders.push_back(it->path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& inside : folders) {
    if (files_in(inside, is_shard_name).empty()) continue;
    return fmt::format("; \"{}\" in it has some", core::printable(inside.filename().string()));
  }
  return "";
}

}  // namespace

bool is_shard_name(const std::string& path) {
  return path.ends_with(".tar") || core::is_compressed(path);
}

std::vector<std::string> local_shards(const std::string& name, std::string& mistake) {
  const bool is_pattern = name.find('*') != std::string::npos;
  // A plain shard name is not looked up: a list may have thousands.
  if (!is_pattern && is_shard_name(name)) return {name};
  std::error_code absent;
  const fs::path path(name);
  std::vector<std::string> files;
  if (fs::is_directory(path, absent)) {
    files = files_in(path, is_shard_name);
    if (files.empty()) {
      mistake = fmt::format("\"{}\" is a folder without a .tar{}", core::printable(name),
                            where_instead(path));
    }
    return files;
  }
  const std::string pattern = path.filename().string();
  if (!is_pattern || fs::exists(path, absent)) return {name};
  files = files_in(path.parent_path(),
                   [&](const std::string& file) { return core::matches(pattern, file); });
  if (files.empty()) mistake = fmt::format("\"{}\" fits no file", core::printable(name));
  return files;
}

}  // namespace scaletrain::recipe
