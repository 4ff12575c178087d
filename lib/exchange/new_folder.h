// A folder of files, written whole or not at all.
#pragma once

#include <filesystem>
#include <functional>

#include "lib/core/disk/disk.h"

namespace scaletrain::exchange {

// `write` puts files into the temporary folder that it gets, each synced; then the folder is synced
// and called `out`. With `replaces` it takes the place of a folder that holds nothing but files of
// an export, which is there until the new one is whole. Throws core::UsageError where something
// else is at `out` already, core::StorageError; nothing is left behind then.
void publish_folder(core::Disk& disk, const std::filesystem::path& out, bool replaces,
                    const std::function<void(const std::filesystem::path& folder)>& write);

}  // namespace scaletrain::exchange
