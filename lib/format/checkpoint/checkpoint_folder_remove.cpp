#include "lib/format/checkpoint/checkpoint_folder_remove.h"

#include <fmt/format.h>

#include <system_error>
#include <vector>

#include "lib/core/disk/left_overs.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/core/error.h"
#include "lib/format/byte_reader.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStays = "it is kept, and removed later if possible";

// A process writes one checkpoint at a time and removes afterwards. Temporary folders with its own
// number are therefore stale too: from a failed attempt, or from another process that had the
// number.
void remove_leftovers(core::Disk& disk, const fs::path& checkpoints) {
  core::remove_left_overs(disk, checkpoints);
  // A crash after a checkpoint was replaced leaves the replaced one, which is not needed.
  for (const std::int64_t step : list_checkpoints(checkpoints)) {
    const fs::path path = checkpoints / checkpoint_name(step);
    std::error_code unknown;
    if (fs::exists(path, unknown)) remove_folder(disk, path.string() + kOldSuffix);
  }
}

// Compares the size of every file with the manifest.
void compare_sizes(const fs::path& checkpoint) {
  for (const auto& [name, entry] : read_manifest(checkpoint).files) {
    const std::int64_t bytes = ByteReader(checkpoint / name).bytes();
    if (bytes == entry.bytes) continue;
    throw core::CheckpointError(
        (checkpoint / name).string(),
        fmt::format("has {} bytes, its manifest says {}", bytes, entry.bytes), "");
  }
}

// False if it cannot be read back now. Throws StorageError if the disk has lost a part of it.
bool is_whole(const fs::path& checkpoint, core::Housekeeping& housekeeping) {
  try {
    compare_sizes(checkpoint);
    return true;
  } catch (const core::Error& error) {
    if (error.exit_code() != core::ExitCode::kData) {
      housekeeping.failed(error, "no earlier checkpoint is removed");
      return false;
    }
    throw core::StorageError(error.place(), error.found(),
                             "the disk lost data that was just written, so no earlier checkpoint "
                             "was removed: check the disk, or choose another /output");
  }
}

fs::path take_name_away(core::Disk& disk, const fs::path& folder) {
  fs::path removed =
      folder.parent_path() / core::temporary_name(folder.filename().string() + ".removed");
  disk.remove_all(removed);
  disk.rename(folder, removed);
  return removed;
}

// True if the name is gone.
bool remove_old(core::Disk& disk, const fs::path& folder, core::Housekeeping& housekeeping) {
  fs::path removed;
  const bool is_gone = housekeeping.attempt(kStays, [&] {
    const bool is_there = core::type_at(folder) != fs::file_type::not_found;
    if (is_there) removed = take_name_away(disk, folder);
  });
  if (!removed.empty()) housekeeping.attempt(kStays, [&] { disk.remove_all(removed); });
  return is_gone;
}

}  // namespace

void remove_folder(core::Disk& disk, const fs::path& folder) {
  if (core::type_at(folder) == fs::file_type::not_found) return;
  disk.remove_all(take_name_away(disk, folder));
}

void discard_folder(core::Disk& disk, const fs::path& folder) {
  if (core::type_at(folder) == fs::file_type::not_found) return;
  const fs::path removed = take_name_away(disk, folder);
  try {
    disk.remove_all(removed);
  } catch (const core::StorageError&) {  // a left-over from now on
  }
}

std::vector<std::int64_t> retain_checkpoints(core::Disk& disk, const fs::path& checkpoints,
                                             const Survey& survey, std::int64_t newest,
                                             const Retention& retention,
                                             core::Housekeeping& housekeeping) {
  housekeeping.attempt(kStays, [&] { remove_leftovers(disk, checkpoints); });
  const auto kept =
      kept_checkpoints(survey, newest, retention, hours_since_written(checkpoints, survey));
  std::vector<std::int64_t> left_out;
  for (const auto& [step, state] : survey.states) {
    if (!kept.contains(step)) left_out.push_back(step);
  }
  std::vector<std::int64_t> removed;
  if (left_out.empty() || !is_whole(checkpoint_path(checkpoints, newest), housekeeping)) {
    return removed;
  }
  for (const std::int64_t step : left_out) {
    const fs::path path = checkpoints / checkpoint_name(step);
    const bool is_old_gone = remove_old(disk, path.string() + kOldSuffix, housekeeping);
    if (remove_old(disk, path, housekeeping) && is_old_gone) removed.push_back(step);
  }
  return removed;
}

}  // namespace scaletrain::format
