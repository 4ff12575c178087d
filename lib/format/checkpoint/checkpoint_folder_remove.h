// Removes checkpoints atomically, and those that retention does not keep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder_survey.h"
#include "lib/format/checkpoint/retention.h"

namespace scaletrain::format {

// Removes a folder: first renames it, then deletes its files. An absent folder is not an error.
void remove_folder(core::Disk& disk, const std::filesystem::path& folder);

// Renames a folder away; deletes its files now if possible, otherwise at the next
// retain_checkpoints().
void discard_folder(core::Disk& disk, const std::filesystem::path& folder);

// Call after `newest` is durable. Removes files of dead processes and, of the checkpoints whose
// states `survey` has read, those that kept_checkpoints() does not return. First compares the file
// sizes of `newest` with its manifest: if one differs, throws core::StorageError and removes
// nothing. Anything that cannot be read or removed is a warning and stays until the next call.
// Returns the removed steps.
std::vector<std::int64_t> retain_checkpoints(core::Disk& disk,
                                             const std::filesystem::path& checkpoints,
                                             const Survey& survey, std::int64_t newest,
                                             const Retention& retention,
                                             core::Housekeeping& housekeeping);

}  // namespace scaletrain::format
