// Removing a checkpoint so that no half of it is ever seen under its name, and which of a run go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/core/disk.h"
#include "lib/format/checkpoint_folder_survey.h"

namespace scaletrain::format {

// Takes the name away first, then the files; absent is fine.
void remove_folder(core::Disk& disk, const std::filesystem::path& folder);

// To be called after `newest` was published: removes what dead processes left and, of the
// checkpoints whose states `survey` has read, those of later steps (training went back behind
// them) and those that neither are among the last `keep_last` nor in `keep`. `newest` stays, and is
// read back before anything is removed: when it does not verify, core::StorageError and nothing is
// lost. What cannot be read is warned about, and nothing is removed.
void retain_checkpoints(core::Disk& disk, const std::filesystem::path& checkpoints,
                        const Survey& survey, std::int64_t newest, std::int64_t keep_last,
                        const std::vector<std::int64_t>& keep);

}  // namespace scaletrain::format
