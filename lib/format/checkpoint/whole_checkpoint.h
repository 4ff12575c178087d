// A checkpoint in pieces as one of whole files.
#pragma once

#include <filesystem>

#include "lib/core/disk/disk.h"

namespace scaletrain::format {

// Writes the contents of `checkpoint`, which verifies, into the empty `folder`: each file of
// tensors whole, the others as they are, then the manifest, all of it synced. The bytes are those
// that one writer would have written. Throws core::CheckpointError where a file is not what it was,
// core::StorageError.
void write_whole(core::Disk& disk, const std::filesystem::path& checkpoint,
                 const std::filesystem::path& folder);

}  // namespace scaletrain::format
