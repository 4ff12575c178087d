// Converts a sharded checkpoint into one with complete tensor files.
#pragma once

#include <filesystem>

#include "lib/core/disk/disk.h"

namespace scaletrain::format {

// Writes the contents of the verified `checkpoint` into the empty `folder`: complete tensor files,
// the other files unchanged, then the manifest, all synced. The bytes are the same as from a single
// writer. Throws core::CheckpointError if a file has changed, and core::StorageError.
void write_whole(core::Disk& disk, const std::filesystem::path& checkpoint,
                 const std::filesystem::path& folder);

}  // namespace scaletrain::format
