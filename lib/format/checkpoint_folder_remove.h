// Removing a checkpoint so that no half of it is ever seen under its name.
#pragma once

#include <filesystem>

#include "lib/core/disk.h"

namespace scaletrain::format {

// Takes the name away first, then the files; absent is fine.
void remove_folder(core::Disk& disk, const std::filesystem::path& folder);

}  // namespace scaletrain::format
