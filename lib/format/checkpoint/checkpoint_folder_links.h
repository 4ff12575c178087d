// The links latest and best: hints for people, which nothing of ours trusts. A save that is killed
// between its rename and its links leaves them behind, so they are put right at every start and
// end. Each is a symbolic link, or a file that holds the name (lib/core/disk/name_link.h).
#pragma once

#include <cstdint>
#include <filesystem>

#include "lib/core/disk/disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/checkpoint_folder_survey.h"

namespace scaletrain::format {

// Points latest at the checkpoint of `newest` and best at the best that its state lists. Without
// one best goes, and it stays as it is while a state could not be read. Costs a sync only where a
// link changes. A link that was copied as a folder (cp -rL, aws s3 sync) is replaced if the
// checkpoint lies beside it. Failures are warnings, retried the next time.
void point_links(core::Disk& disk, const std::filesystem::path& checkpoints, const Survey& survey,
                 std::int64_t newest, core::Housekeeping& housekeeping);

// Like point_links, for the newest checkpoint in the folder; failures are warnings.
void settle_links(core::Disk& disk, const std::filesystem::path& checkpoints);

}  // namespace scaletrain::format
