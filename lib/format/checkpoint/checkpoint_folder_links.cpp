#include "lib/format/checkpoint/checkpoint_folder_links.h"

#include <string>
#include <system_error>

#include "lib/core/disk/name_link.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_manifest.h"
#include "lib/format/checkpoint/checkpoint_folder_remove.h"

namespace scaletrain::format {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBehind = "latest and best may name older checkpoints";

// True if `link` is a folder that a copy program without links made of a checkpoint beside it.
bool is_copied_link(const fs::path& link) {
  std::error_code unknown;
  if (fs::symlink_status(link, unknown).type() != fs::file_type::directory) return false;
  try {
    const Manifest copy = read_manifest(link);
    const fs::path original = checkpoint_path(link.parent_path(), copy.step);
    return render_manifest(copy) == render_manifest(read_manifest(original));
  } catch (const core::Error&) {
    return false;
  }
}

void point_link(core::Disk& disk, const fs::path& link, std::int64_t step,
                core::Housekeeping& housekeeping) {
  const std::string target = checkpoint_path(link.parent_path(), step).filename();
  if (core::read_name_link(link) == target) return;
  housekeeping.attempt(kBehind, [&] {
    if (is_copied_link(link)) remove_folder(disk, link);
    const std::string why = core::point_name_link(disk, target, link);
    if (why.empty()) return;
    housekeeping.note(link.string(), why,
                      "without symbolic links, latest and best are files that hold the name");
  });
}

void remove_link(core::Disk& disk, const fs::path& link, core::Housekeeping& housekeeping) {
  housekeeping.attempt(kBehind, [&] { disk.remove_all(link); });
}

}  // namespace

void point_links(core::Disk& disk, const fs::path& checkpoints, const Survey& survey,
                 std::int64_t newest, core::Housekeeping& housekeeping) {
  point_link(disk, checkpoints / "latest", newest, housekeeping);
  if (!survey.unread.empty()) return;
  const fs::path best = checkpoints / "best";
  const TrainState& state = survey.states.at(newest);
  for (const RankedStep& one : state.best_steps) {  // the first may not have been written
    if (survey.states.contains(one.step)) return point_link(disk, best, one.step, housekeeping);
  }
  if (!state.best_steps.empty()) return;
  // An earlier version did not list the best ones: its link may be right.
  std::error_code unknown;
  const bool may_be_right = state.best_step >= 0 && fs::exists(best, unknown);
  if (!may_be_right) remove_link(disk, best, housekeeping);  // training went back before it
}

void settle_links(core::Disk& disk, const fs::path& checkpoints) {
  core::Housekeeping housekeeping;
  try {
    const Survey survey = survey_checkpoints(checkpoints);
    if (survey.states.empty()) return;
    point_links(disk, checkpoints, survey, survey.states.rbegin()->first, housekeeping);
  } catch (const core::Error& error) {
    housekeeping.failed(error, kBehind);
  }
}

}  // namespace scaletrain::format
