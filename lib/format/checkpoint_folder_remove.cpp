#include "lib/format/checkpoint_folder_remove.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "lib/core/error.h"
#include "lib/core/left_overs.h"
#include "lib/core/log.h"
#include "lib/core/read_faults.h"
#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

// A process writes one checkpoint at a time and removes afterwards, so its own folders are
// left-overs too: of an attempt that failed, or of another process that had its number.
void remove_leftovers(core::Disk& disk, const fs::path& checkpoints) {
  core::remove_left_overs(disk, checkpoints);
  // A cut after a checkpoint was replaced leaves the one before, which nothing needs any more.
  for (const std::int64_t step : list_checkpoints(checkpoints)) {
    const fs::path path = checkpoints / checkpoint_name(step);
    std::error_code unknown;
    if (fs::exists(path, unknown)) remove_folder(disk, path.string() + kOldSuffix);
  }
}

// Of every file, with what the manifest says.
void compare_sizes(const fs::path& checkpoint) {
  for (const auto& [name, entry] : read_manifest(checkpoint).files) {
    const std::int64_t bytes = ByteReader(checkpoint / name).bytes();
    if (bytes == entry.bytes) continue;
    throw core::CheckpointError(
        (checkpoint / name).string(),
        fmt::format("has {} bytes, its manifest says {}", bytes, entry.bytes), "");
  }
}

}  // namespace

void remove_folder(core::Disk& disk, const fs::path& folder) {
  if (core::type_at(folder) == fs::file_type::not_found) return;
  const fs::path removed =
      folder.parent_path() / temporary_name(folder.filename().string() + ".removed");
  disk.remove_all(removed);
  disk.rename(folder, removed);
  disk.remove_all(removed);
}

std::vector<std::int64_t> retain_checkpoints(core::Disk& disk, const fs::path& checkpoints,
                                             const Survey& survey, std::int64_t newest,
                                             const Retention& retention) {
  try {
    remove_leftovers(disk, checkpoints);
  } catch (const core::Error& error) {
    core::warn("{}: {}; what was left over stays", error.place(), error.found());
  }
  const auto kept =
      kept_checkpoints(survey, newest, retention, hours_since_written(checkpoints, survey));
  std::vector<std::int64_t> removed;
  for (const auto& [step, state] : survey.states) {
    if (!kept.contains(step)) removed.push_back(step);
  }
  if (removed.empty()) return removed;

  try {
    compare_sizes(checkpoint_path(checkpoints, newest));
  } catch (const core::Error& error) {
    if (error.exit_code() != core::ExitCode::kData) {
      core::warn("{}: {}; no earlier checkpoint is removed", error.place(), error.found());
      return {};
    }
    throw core::StorageError(error.place(), error.found(),
                             "the disk did not keep what was just written, so no earlier "
                             "checkpoint was removed: check it, or choose another /output");
  }
  for (const std::int64_t step : removed) {
    const fs::path path = checkpoints / checkpoint_name(step);
    remove_folder(disk, path.string() + kOldSuffix);
    remove_folder(disk, path);
  }
  return removed;
}

}  // namespace scaletrain::format
