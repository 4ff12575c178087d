// What a process leaves behind that was killed while it wrote: "NAME.tmp.PID" beside NAME
// (write_durably and replace_link, lib/core/disk.h; checkpoints, lib/format/checkpoint_folder.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lib/core/disk.h"

namespace scaletrain::core {

// The PID of such a name.
std::optional<int> pid_of_temporary(const std::string& name);

// Removes those in `folder` whose process is dead, and this process's own: call it while that
// writes none there. Throws as names_in (lib/core/read_faults.h) and the disk.
void remove_left_overs(Disk& disk, const std::filesystem::path& folder);

}  // namespace scaletrain::core
