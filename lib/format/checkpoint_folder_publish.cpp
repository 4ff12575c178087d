#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint_folder.h"
#include "lib/format/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint_folder_names.h"
#include "lib/format/checkpoint_folder_remove.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

using WriteFiles = std::function<FolderFiles(const fs::path& folder)>;

// Absent counts as damaged; one that could not be read does not.
bool is_damaged(const fs::path& checkpoint) {
  try {
    verify_checkpoint(checkpoint);
    return false;
  } catch (const core::Error& error) {
    return error.exit_code() == core::ExitCode::kData;
  }
}

// Takes the name away from an earlier checkpoint of the same step, which stays to be found until
// the new one has the name.
void set_aside(core::Disk& disk, const fs::path& checkpoint, const fs::path& old) {
  if (is_damaged(checkpoint)) return remove_folder(disk, checkpoint);
  remove_folder(disk, old);
  disk.rename(checkpoint, old);
}

fs::path publish_once(core::Disk& disk, const fs::path& checkpoints, Manifest& manifest,
                      const WriteFiles& write_files) {
  fs::path path = checkpoints / checkpoint_name(manifest.step);
  const fs::path old = path.string() + kOldSuffix;
  const fs::path temporary = checkpoints / temporary_name(path.filename());
  disk.remove_all(temporary);
  disk.make_folders(temporary);
  FolderFiles written = write_files(temporary);
  manifest.files = std::move(written.files);
  manifest.tensors = std::move(written.tensors);
  check_tables(manifest.tensors, manifest.files, temporary.string());
  write_hashed(disk, temporary / kManifestName, render_manifest(manifest));
  disk.sync_folder(temporary);

  set_aside(disk, path, old);
  disk.rename(temporary, path);
  disk.sync_folder(checkpoints);
  remove_folder(disk, old);
  return path;
}

// What a failure says about room: "needs 120 bytes, 100 are free".
std::string room(core::Disk& disk, const fs::path& folder, std::int64_t needed) {
  return fmt::format("needs {} bytes, {} are free", needed, disk.free_bytes(folder));
}

}  // namespace

fs::path publish_checkpoint(core::Disk& disk, const fs::path& checkpoints, Manifest manifest,
                            std::int64_t expected_bytes, const WriteFiles& write_files) {
  disk.make_folders(checkpoints);
  disk.sync_folder(checkpoints.parent_path());
  const std::int64_t needed = expected_bytes + expected_bytes / 5;
  const std::string what = fmt::format("the checkpoint of step {}", manifest.step);
  if (disk.free_bytes(checkpoints) < needed) {
    throw core::StorageError(checkpoints.string(),
                             fmt::format("{} {}", what, room(disk, checkpoints, needed)),
                             "free space on this disk, keep fewer checkpoints "
                             "(/checkpoint/keep_last) or choose another /output");
  }
  const auto remove_unfinished = [&] {
    try {
      disk.remove_all(checkpoints / temporary_name(checkpoint_name(manifest.step)));
    } catch (const core::StorageError& second) {
      core::warn("{}: {}", second.place(), second.found());
    }
  };
  try {
    return publish_once(disk, checkpoints, manifest, write_files);
  } catch (const core::StorageError& error) {
    core::warn("{}: {}; {} is written once more", error.place(), error.found(), what);
  } catch (const std::exception&) {  // that would come again
    remove_unfinished();
    throw;
  }
  // A file whose sync failed may have lost its bytes for good, so all of it is written again.
  try {
    return publish_once(disk, checkpoints, manifest, write_files);
  } catch (const core::StorageError& error) {
    remove_unfinished();
    throw core::StorageError(
        error.place(),
        fmt::format("{} ({} {})", error.found(), what, room(disk, checkpoints, needed)),
        error.remedy());
  }
}

}  // namespace scaletrain::format
