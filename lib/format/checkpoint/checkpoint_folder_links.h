// The links latest and best, for users only: the programs do not rely on them. A save that is
// killed between rename and links leaves them out of date, so they are corrected at every start and
// end. Each is a symbolic link, or a file with the name (lib/core/disk/name_link.h).
#pragma once

#include <cstdint>
#include <filesystem>

#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder_survey.h"

namespace scaletrain::format {

// Points latest at `newest` and best at the best checkpoint in its state. Removes best if there is
// none; leaves it unchanged while a state could not be read. Syncs only if a link changes. A link
// that was copied as a folder (cp -rL, aws s3 sync) is replaced if the checkpoint exists beside it.
// Failures are warnings and are retried at the next call.
void point_links(core::Disk& disk, const std::filesystem::path& checkpoints, const Survey& survey,
                 std::int64_t newest, core::Housekeeping& housekeeping);

// Like point_links, for the newest checkpoint in the folder; failures are warnings.
void settle_links(core::Disk& disk, const std::filesystem::path& checkpoints);

}  // namespace scaletrain::format
