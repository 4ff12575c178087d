#include "lib/format/checkpoint_folder_remove.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <set>

#include "lib/core/error.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_folder_names.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

// A process writes one checkpoint at a time and removes afterwards, so its own folders are
// left-overs too: of an attempt that failed, or of another process that had its number.
void remove_leftovers(core::Disk& disk, const fs::path& checkpoints) {
  for (const std::string& name : names_in(checkpoints)) {
    const auto pid = pid_of_temporary(name);
    if (!pid) continue;
    const bool alive = *pid != ::getpid() && (::kill(*pid, 0) == 0 || errno == EPERM);
    if (!alive) disk.remove_all(checkpoints / name);
  }
  // A cut after a checkpoint was replaced leaves the one before, which nothing needs any more.
  for (const std::int64_t step : list_checkpoints(checkpoints)) {
    const fs::path path = checkpoints / checkpoint_name(step);
    if (fs::exists(path)) remove_folder(disk, path.string() + kOldSuffix);
  }
}

}  // namespace

void remove_folder(core::Disk& disk, const fs::path& folder) {
  if (!fs::exists(folder)) return;
  const fs::path removed =
      folder.parent_path() / temporary_name(folder.filename().string() + ".removed");
  disk.remove_all(removed);
  disk.rename(folder, removed);
  disk.remove_all(removed);
}

void retain_checkpoints(core::Disk& disk, const fs::path& checkpoints, std::int64_t newest,
                        std::int64_t keep_last, const std::vector<std::int64_t>& keep) {
  remove_leftovers(disk, checkpoints);
  const std::vector<std::int64_t> steps = list_checkpoints(checkpoints);
  std::set<std::int64_t> kept(keep.begin(), keep.end());
  kept.insert(newest);
  const auto after_newest = std::upper_bound(steps.begin(), steps.end(), newest);
  const auto last = std::min<std::int64_t>(keep_last, after_newest - steps.begin());
  kept.insert(after_newest - last, after_newest);
  std::vector<std::int64_t> removed;
  for (const std::int64_t step : steps) {
    if (step > newest || kept.count(step) == 0) removed.push_back(step);
  }
  if (removed.empty()) return;

  try {
    verify_checkpoint(checkpoint_path(checkpoints, newest));
  } catch (const core::Error& error) {
    throw core::StorageError(error.place(), error.found(),
                             "the disk did not keep what was just written, so no earlier "
                             "checkpoint was removed: check it, or choose another /output");
  }
  for (const std::int64_t step : removed) {
    const fs::path path = checkpoints / checkpoint_name(step);
    remove_folder(disk, path.string() + kOldSuffix);
    remove_folder(disk, path);
  }
}

}  // namespace scaletrain::format
