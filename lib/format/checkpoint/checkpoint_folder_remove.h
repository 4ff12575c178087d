// Removing a checkpoint so that no half of it is ever seen under its name, and which of a run go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder_survey.h"
#include "lib/format/checkpoint/retention.h"

namespace scaletrain::format {

// Takes the name away first, then the files; absent is fine.
void remove_folder(core::Disk& disk, const std::filesystem::path& folder);

// Takes the name away; the files go if they can, else with the next retain_checkpoints.
void discard_folder(core::Disk& disk, const std::filesystem::path& folder);

// To be called after `newest` was published, whose bytes are on the disk: removes what dead
// processes left and, of the checkpoints whose states `survey` has read, those that
// kept_checkpoints() leaves out. Before that the files of `newest` are compared with its manifest,
// by size: where one differs, core::StorageError and nothing is lost. Anything that cannot be read
// or removed is a warning and stays until the next time. Returns the steps that were removed.
std::vector<std::int64_t> retain_checkpoints(core::Disk& disk,
                                             const std::filesystem::path& checkpoints,
                                             const Survey& survey, std::int64_t newest,
                                             const Retention& retention,
                                             core::Housekeeping& housekeeping);

}  // namespace scaletrain::format
