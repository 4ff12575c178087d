#include "lib/format/checkpoint_folder_links.h"

#include <system_error>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/read_faults.h"
#include "lib/format/checkpoint_folder.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

void point_link(core::Disk& disk, const fs::path& link, std::int64_t step) {
  const fs::path target = checkpoint_path(link.parent_path(), step).filename();
  std::error_code absent;
  if (fs::read_symlink(link, absent) != target) core::replace_link(disk, target, link);
}

}  // namespace

void point_links(core::Disk& disk, const fs::path& checkpoints, const Survey& survey,
                 std::int64_t newest) {
  point_link(disk, checkpoints / "latest", newest);
  if (!survey.unread.empty()) return;
  const fs::path best = checkpoints / "best";
  const TrainState& state = survey.states.at(newest);
  for (const RankedStep& one : state.best_steps) {  // the first may not have been written
    if (survey.states.contains(one.step)) return point_link(disk, best, one.step);
  }
  if (!state.best_steps.empty()) return;
  // An earlier version did not list the best ones: its link may be right.
  const bool may_be_right = state.best_step >= 0 && core::type_at(best) != fs::file_type::not_found;
  if (!may_be_right) disk.remove_all(best);  // training went back behind it, or none is kept
}

void settle_links(core::Disk& disk, const fs::path& checkpoints) {
  try {
    const Survey survey = survey_checkpoints(checkpoints);
    if (survey.states.empty()) return;
    point_links(disk, checkpoints, survey, survey.states.rbegin()->first);
  } catch (const core::Error& error) {
    core::warn("{}: {}; latest and best may be behind", error.place(), error.found());
  }
}

}  // namespace scaletrain::format
