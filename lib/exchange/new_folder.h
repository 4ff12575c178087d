// Writes a folder of files atomically.
#pragma once

#include <filesystem>
#include <functional>

#include "lib/core/disk/disk.h"

namespace scaletrain::exchange {

// Calls `write` with a temporary folder, in which it writes and syncs files; then syncs the folder
// and renames it to `out`. With `replaces`, it replaces a folder that has only files of an export,
// which stays until the new one is complete. Throws core::UsageError if something else exists at
// `out`, and core::StorageError; leaves nothing behind then.
void publish_folder(core::Disk& disk, const std::filesystem::path& out, bool replaces,
                    const std::function<void(const std::filesystem::path& folder)>& write);

}  // namespace scaletrain::exchange
