// Checkpoint retention: selects the checkpoints of a run to keep, with the reasons.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "lib/format/checkpoint/checkpoint_folder_survey.h"

namespace scaletrain::format {

// Retention settings. The newest state lists the best checkpoints (best_steps), which also stay.
struct Retention {
  std::int64_t last = 3;  // so many of the newest; the newest itself stays always
  // For ever: one whose distance from the one before that is kept so is at least this. The oldest
  // is the first of them.
  std::optional<double> every_steps = {}, every_epochs = {};
  std::optional<double> hours = {};  // keeps checkpoints that are younger, or of unknown age
};

// Hours since each checkpoint of `survey` was written, by step; without those that cannot be looked
// at.
std::map<std::int64_t, double> hours_since_written(const std::filesystem::path& checkpoints,
                                                   const Survey& survey);

// Returns the reason to keep each step: "newest", "best", "last", "every" or "age", the first that
// holds. Other checkpoints whose states `survey` has read may be removed, also those of later
// steps: training went back to before them.
std::map<std::int64_t, std::string> kept_checkpoints(const Survey& survey, std::int64_t newest,
                                                     const Retention& retention,
                                                     const std::map<std::int64_t, double>& hours);

}  // namespace scaletrain::format
