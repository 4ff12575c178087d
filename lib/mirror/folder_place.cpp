// Remote copies in a folder, on another disk or shared with other machines.
#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <utility>

#include "lib/core/disk/read_faults.h"
#include "lib/core/disk/watched_disk.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_links.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"
#include "lib/mirror/place.h"

namespace scaletrain::mirror {
namespace {

namespace fs = std::filesystem;

void copy_file(core::Disk& disk, const OpenCheckpoint& checkpoint, const std::string& name,
               const fs::path& to) {
  const auto file = disk.create(to, checkpoint.file(name).bytes());
  checkpoint.read(name, [&](std::span<const std::byte> piece) { file->write(piece); });
  file->sync();
}

// True if the copy exists, by its manifest and the sizes of its files.
bool is_there(const OpenCheckpoint& checkpoint, const fs::path& copy) {
  try {
    if (format::render_manifest(format::read_manifest(copy)) != checkpoint.manifest_text()) {
      return false;
    }
    const OpenCheckpoint looked_at(copy);
    return true;
  } catch (const core::CheckpointError&) {
    return false;
  }
}

// Syncs the parents of new folders too: otherwise a crash could lose a folder with its contents.
void make_durably(core::Disk& disk, const fs::path& folder) {
  const fs::path above = folder.parent_path();
  if (core::type_at(above) == fs::file_type::not_found) make_durably(disk, above);
  disk.make_folders(folder);
  disk.sync_folder(above);
}

class FolderPlace : public Place {
 public:
  FolderPlace(const std::string& path, core::Disk& disk, HousekeepingPtr housekeeping)
      : folder_(path),
        checkpoints_(checkpoints_of(path)),
        disk_(disk),
        housekeeping_(std::move(housekeeping)) {}

  std::int64_t put(const OpenCheckpoint& checkpoint, const std::function<void()>& moved) override {
    const format::Manifest& manifest = checkpoint.manifest();
    if (is_there(checkpoint, format::checkpoint_path(checkpoints_, manifest.step))) return 0;
    core::WatchedDisk disk(disk_, moved);
    make_durably(disk, folder_);
    const auto copy_all = [&](const fs::path& folder) {
      for (const auto& [name, entry] : manifest.files) {
        copy_file(disk, checkpoint, name, folder / name);
      }
      return format::FolderFiles(manifest.files, manifest.tensors);
    };
    format::publish_checkpoint(disk, checkpoints_, manifest, checkpoint.bytes(), copy_all,
                               *housekeeping_);
    return checkpoint.bytes();
  }

  void retain(std::int64_t newest, const format::Retention& retention) override {
    format::retain_checkpoints(disk_, checkpoints_, format::survey_checkpoints(checkpoints_),
                               newest, retention, *housekeeping_);
    format::settle_links(disk_, checkpoints_);
  }

  void cancel() override {}

 private:
  fs::path folder_, checkpoints_;
  core::Disk& disk_;
  HousekeepingPtr housekeeping_;
};

}  // namespace

std::unique_ptr<Place> make_folder_place(const std::string& path, core::Disk& disk,
                                         HousekeepingPtr housekeeping) {
  return std::make_unique<FolderPlace>(path, disk, std::move(housekeeping));
}

}  // namespace scaletrain::mirror
