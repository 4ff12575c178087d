// Stale temporary files of a process that was killed while it wrote: files and folders under
// temporary names (lib/core/disk/temporary_name.h).
#pragma once

#include <filesystem>

#include "lib/core/disk/disk.h"

namespace scaletrain::core {

// Removes those in `folder` whose process is dead, and this process's own: call it while that
// writes none there. If one cannot be removed it stays, and the first error is thrown when the
// others are gone. Throws as names_in (lib/core/disk/read_faults.h) and the disk.
void remove_left_overs(Disk& disk, const std::filesystem::path& folder);

}  // namespace scaletrain::core
