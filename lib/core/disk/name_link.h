// Names that point at another name in the same folder, such as checkpoints/latest: symbolic links,
// or, on a file system that has none (SMB, some FUSE file systems), files that hold the name.
#pragma once

#include <filesystem>
#include <string>

#include "lib/core/disk/disk.h"

namespace scaletrain::core {

// Returns the name that `link` points at, a symbolic link or a file with the name; "" for anything
// else.
std::string read_name_link(const std::filesystem::path& link);

// Points `link` at `target`. If no symbolic link can be made, tried twice, it becomes a file.
// Returns why no symbolic link could be made, "" if it is one.
std::string point_name_link(Disk& disk, const std::string& target,
                            const std::filesystem::path& link);

}  // namespace scaletrain::core
