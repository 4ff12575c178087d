#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "lib/core/disk/name_link.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

bool names_one_checkpoint(const fs::path& path) {
  const std::string name = name_of(path);
  std::error_code absent;
  return name == "latest" || name == "best" || step_of_name(name).has_value() ||
         fs::exists(path / kManifestName, absent);
}

// Returns the checkpoint that `latest` or `best` refers to, by the checkpoints' states, as the
// links may be out of date. nullopt for another name, or if there is no checkpoint beside it.
std::optional<fs::path> meant_by_link(const fs::path& path) {
  const std::string name = name_of(path);
  const fs::path checkpoints = fs::absolute(path / "..").lexically_normal();
  if (name == "latest") {
    const std::vector<std::int64_t> steps = list_checkpoints(checkpoints);
    if (!steps.empty()) return checkpoint_path(checkpoints, steps.back());
  } else if (name == "best") {
    const Survey survey = survey_checkpoints(checkpoints);
    if (survey.states.empty()) return std::nullopt;
    const std::vector<RankedStep>& bests = survey.states.rbegin()->second.best_steps;
    if (!bests.empty()) return checkpoint_path(checkpoints, bests.front().step);
  }
  return std::nullopt;
}

// Returns the target of a link such as latest; the path itself if it is no link.
fs::path follow(const fs::path& path) {
  const fs::path link = path.has_filename() ? path : path.parent_path();
  const std::string target = core::read_name_link(link);
  return target.empty() ? path : link.parent_path() / target;
}

}  // namespace

std::vector<std::int64_t> list_checkpoints(const fs::path& checkpoints) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : core::names_in(checkpoints)) {
    if (const auto step = step_of_name(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

fs::path checkpoint_path(const fs::path& checkpoints, std::int64_t step) {
  const fs::path path = checkpoints / checkpoint_name(step);
  const fs::path old = path.string() + kOldSuffix;
  // If the folder is inaccessible, reading it reports why.
  std::error_code unknown;
  const bool is_gone = fs::status(path, unknown).type() == fs::file_type::not_found;
  return is_gone && fs::exists(old, unknown) ? old : path;
}

CheckpointsAt checkpoints_at(const fs::path& path) {
  if (names_one_checkpoint(path)) {
    const fs::path folder = meant_by_link(path).value_or(follow(path));
    if (core::type_at(folder) != fs::file_type::directory) {
      throw core::CheckpointError(
          path.string(),
          folder == path ? "there is no such checkpoint"
                         : fmt::format("points to {}, which does not exist", folder.string()),
          "name the run's folder to use its newest checkpoint");
    }
    return {true, {folder}};
  }
  const fs::file_type type = core::type_at(path);
  if (type != fs::file_type::directory && type != fs::file_type::not_found) {
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
      check_checkpoint(folder);
      return folder;
    } catch (const core::Error& error) {
      // A checkpoint that cannot be read now may be the best one: no older one is used instead.
      if (found.is_one || error.exit_code() != core::ExitCode::kData) throw;
      report(error.what());
    }
  }
  if (found.folders.empty()) return std::nullopt;
  throw core::CheckpointError(
      path.string(),
      fmt::format("has {} checkpoints, and none of them is complete", found.folders.size()),
      "start a new run in another /output, or restore a checkpoint from a copy");
}

fs::path checkpoint_at(const fs::path& path) {
  const auto found =
      find_checkpoint(path, [](const std::string& damage) { core::warn("{}", damage); });
  if (found) return *found;
  std::error_code unknown;
  const bool is_there = fs::exists(path, unknown) || unknown;
  throw core::CheckpointError(path.string(), is_there ? "has no checkpoint" : "does not exist",
                              "name a run's folder, its checkpoints folder or one checkpoint");
}

}  // namespace scaletrain::format
