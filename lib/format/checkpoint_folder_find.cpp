#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "lib/core/error.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

// "runs/a/" and "." have no name of their own.
std::string name_of(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

bool names_one_checkpoint(const fs::path& path) {
  const std::string name = name_of(path);
  std::error_code absent;
  return name == "latest" || name == "best" || step_of_name(name).has_value() ||
         fs::exists(path / kManifestName, absent);
}

// Where a link such as latest points; the path itself where it is no link.
fs::path follow(const fs::path& path) {
  const fs::path link = path.has_filename() ? path : path.parent_path();
  if (!fs::is_symlink(link)) return path;
  return link.parent_path() / fs::read_symlink(link);
}

}  // namespace

std::vector<std::int64_t> list_checkpoints(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(checkpoints)) {
    if (const auto step = step_of_name(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  const fs::path path = checkpoints / checkpoint_name(step);
  return fs::exists(path) ? path : fs::path(path.string() + kOldSuffix);
}

CheckpointsAt checkpoints_at(const fs::path& path) {
  if (names_one_checkpoint(path)) {
    const fs::path folder = follow(path);
    if (!fs::is_directory(folder)) {
      throw core::CheckpointError(
          path.string(),
          folder == path ? "there is no such checkpoint"
                         : fmt::format("points to {}, which is not there", folder.string()),
          "name the run's folder to use its newest checkpoint");
    }
    return {true, {folder}};
  }
  if (fs::exists(path) && !fs::is_directory(path)) {
    throw core::CheckpointError(path.string(), "is a file, not a checkpoint's folder",
                                "name the folder of a checkpoint or of a run");
  }
  const fs::path checkpoints = name_of(path) == "checkpoints" ? path : path / "checkpoints";
  CheckpointsAt result;
  for (const std::int64_t step : list_checkpoints(checkpoints)) {
    result.folders.push_back(checkpoint_path(checkpoints, step));
  }
  std::reverse(result.folders.begin(), result.folders.end());
  return result;
}

std::optional<fs::path> find_checkpoint(const fs::path& path,
                                        const std::function<void(const std::string&)>& report) {
  const CheckpointsAt found = checkpoints_at(path);
  for (const fs::path& folder : found.folders) {
    try {
      verify_checkpoint(folder);
      return folder;
    } catch (const core::Error& error) {
      if (found.is_one) throw;
      report(error.what());
    }
  }
  if (found.folders.empty()) return std::nullopt;
  throw core::CheckpointError(
      path.string(),
      fmt::format("has {} checkpoints, and none of them is whole", found.folders.size()),
      "start afresh in another /output, or bring a checkpoint back from a copy");
}

}  // namespace scaletrain::format
