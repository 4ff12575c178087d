#include <fmt/format.h>

#include <functional>
#include <optional>
#include <utility>

#include "lib/core/disk/temporary_name.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"
#include "lib/format/checkpoint/stored_tensors.h"

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
  if (is_damaged(checkpoint)) return discard_folder(disk, checkpoint);
  discard_folder(disk, old);
  disk.rename(checkpoint, old);
}

// Removes `old` if possible; otherwise the next retain_checkpoints() does.
void discard_if_possible(core::Disk& disk, const fs::path& old) {
  try {
    discard_folder(disk, old);
  } catch (const core::Error&) {
  }
}

// Compares the bytes of each file with the checksums computed in memory.
void read_back_bytes(const fs::path& folder, const Manifest& manifest,
                     const std::function<void()>& progress) {
  for (const auto& [name, entry] : manifest.files) {
    progress();
    const FileEntry found = hash_file(folder / name, entry.kind);
    if (found.bytes == entry.bytes && found.sum == entry.sum) continue;
    throw core::StorageError(
        (folder / name).string(),
        fmt::format("is read back with {} bytes and the sum {}, and {} bytes with the sum {} were "
                    "written",
                    found.bytes, found.sum, entry.bytes, entry.sum),
        "check the disk and the kernel's log, or choose another /output");
  }
}

// Compares the tensors in the files with the tables in memory.
void read_back_tensors(const fs::path& folder, const Manifest& manifest,
                       const std::function<void()>& progress) {
  try {
    if (render_tables(read_manifest(folder).tensors) != render_tables(manifest.tensors)) {
      throw core::CheckpointError((folder / kManifestName).string(),
                                  "names other pieces than were written", "");
    }
    for (const std::string& name : tensor_files(manifest)) {
      progress();
      [[maybe_unused]] const StoredTensors stored(folder / name);
    }
  } catch (const core::CheckpointError& error) {
    throw core::CheckpointError(
        error.place(),
        fmt::format("is the first checkpoint of this start and cannot be read back: {}",
                    error.found()),
        "it was removed, and earlier checkpoints are kept: train with another optimizer or layout, "
        "and report this recipe");
  }
}

fs::path publish_once(core::Disk& disk, const fs::path& checkpoints, Manifest& manifest,
                      const WriteFiles& write_files) {
  fs::path path = checkpoints / checkpoint_name(manifest.step);
  const fs::path old = path.string() + kOldSuffix;
  const fs::path temporary = checkpoints / core::temporary_name(path.filename());
  disk.remove_all(temporary);
  disk.make_folders(temporary);
  FolderFiles written = write_files(temporary);
  manifest.files = std::move(written.files);
  manifest.tensors = std::move(written.tensors);
  const std::function<void()> read_back = std::move(written.read_back);
  check_tables(manifest.tensors, manifest.files, temporary.string());
  write_hashed(disk, temporary / kManifestName, render_manifest(manifest));
  disk.sync_folder(temporary);
  if (read_back) {
    read_back_bytes(temporary, manifest, read_back);
    read_back_tensors(temporary, manifest, read_back);
  }

  set_aside(disk, path, old);
  disk.rename(temporary, path);
  disk.sync_folder(checkpoints);
  discard_if_possible(disk, old);
  return path;
}

void make_durably(core::Disk& disk, const fs::path& checkpoints) {
  disk.make_folders(checkpoints);
  disk.sync_folder(checkpoints.parent_path());
}

// An error may come once.
void make_or_retry(core::Disk& disk, const fs::path& checkpoints) {
  try {
    return make_durably(disk, checkpoints);
  } catch (const core::StorageError& error) {
    core::warn("{}: {}; tried once more", error.place(), error.found());
  }
  make_durably(disk, checkpoints);
}

// nullopt: the file system does not report it.
std::optional<std::int64_t> free_bytes(core::Disk& disk, const fs::path& folder,
                                       core::Housekeeping& housekeeping) {
  std::optional<std::int64_t> free;
  housekeeping.attempt("a checkpoint is written without knowing whether it has room",
                       [&] { free = disk.free_bytes(folder); });
  return free;
}

// Describes disk space in an error: "needs 120 bytes, 100 are free".
std::string room(std::int64_t needed, std::optional<std::int64_t> free) {
  return free ? fmt::format("needs {} bytes, {} are free", needed, *free)
              : fmt::format("needs {} bytes", needed);
}

}  // namespace

fs::path publish_checkpoint(core::Disk& disk, const fs::path& checkpoints, Manifest manifest,
                            std::int64_t expected_bytes, const WriteFiles& write_files) {
  core::Housekeeping housekeeping;
  return publish_checkpoint(disk, checkpoints, std::move(manifest), expected_bytes, write_files,
                            housekeeping);
}

fs::path publish_checkpoint(core::Disk& disk, const fs::path& checkpoints, Manifest manifest,
                            std::int64_t expected_bytes, const WriteFiles& write_files,
                            core::Housekeeping& housekeeping) {
  make_or_retry(disk, checkpoints);
  const std::int64_t needed = expected_bytes + expected_bytes / 5;
  const std::string what = fmt::format("the checkpoint of step {}", manifest.step);
  const auto free = free_bytes(disk, checkpoints, housekeeping);
  if (free && *free < needed) {
    throw core::StorageError(checkpoints.string(), fmt::format("{} {}", what, room(needed, free)),
                             "free space on this disk, keep fewer checkpoints "
                             "(/checkpoint/keep_last) or choose another /output");
  }
  const auto remove_unfinished = [&] {
    try {
      disk.remove_all(checkpoints / core::temporary_name(checkpoint_name(manifest.step)));
    } catch (const core::StorageError& second) {
      core::warn("{}: {}", second.place(), second.found());
    }
  };
  try {
    return publish_once(disk, checkpoints, manifest, write_files);
  } catch (const core::StorageError& error) {
    core::warn("{}: {}; {} is written once more", error.place(), error.found(), what);
  } catch (const std::exception&) {  // would fail again
    remove_unfinished();
    throw;
  }
  // After a failed sync the bytes of a file may be lost, so the whole file is written again.
  try {
    return publish_once(disk, checkpoints, manifest, write_files);
  } catch (const core::StorageError& error) {
    remove_unfinished();
    throw core::StorageError(error.place(),
                             fmt::format("{} ({} {})", error.found(), what,
                                         room(needed, free_bytes(disk, checkpoints, housekeeping))),
                             error.remedy());
  }
}

}  // namespace scaletrain::format
