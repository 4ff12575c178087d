#include "lib/format/checkpoint/checkpoint_folder_copy.h"

#include <cstdint>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"

namespace scaletrain::format {

std::filesystem::path publish_copy(
    core::Disk& disk, const std::filesystem::path& checkpoints, const Manifest& manifest,
    const std::function<void(const std::string& name, const std::filesystem::path& to)>& fetch) {
  std::int64_t bytes = 0;
  for (const auto& [name, entry] : manifest.files) bytes += entry.bytes;
  std::filesystem::path copy = publish_checkpoint(
      disk, checkpoints, manifest, bytes, [&](const std::filesystem::path& folder) {
        for (const auto& [name, entry] : manifest.files) fetch(name, folder / name);
        return FolderFiles(manifest.files, manifest.tensors);
      });
  try {
    check_checkpoint(copy);
  } catch (const core::CheckpointError&) {
    remove_folder(disk, copy);
    throw;
  }
  return copy;
}

}  // namespace scaletrain::format
